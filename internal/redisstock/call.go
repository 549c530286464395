package redisstock

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// attempts is how often a script is sent whose answer was lost. Every script is
// harmless to repeat.
const attempts = 2

// failure tells what an error of the client says about the command.
type failure int

const (
	refused    failure = iota // Redis answered with an error: not executed
	unsent                    // it never left this process: not executed
	lostAnswer                // sent, or perhaps sent, and no answer: anything
)

// classify is the one place that judges the client's errors. Whatever it does
// not know counts as a lost answer.
func classify(err error) failure {
	var reply redis.Error
	var network *net.OpError
	switch {
	case errors.As(err, &reply):
		return refused
	case errors.As(err, &network) && network.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return unsent
	default:
		return lostAnswer
	}
}

// call runs a script and repeats it when the answer is lost. Its error is
// stock.ErrUnavailable when nothing was executed, and unclear when that can't
// be said: one lost answer is enough, since what follows it (a refused
// connection, say) tells nothing about the attempt before. A script that deducts
// has stock.ErrOutcomeUnknown for unclear, any other stock.ErrUnavailable.
func (s *Store) call(ctx context.Context, unclear error, script *script, keys []string, args ...any) ([]any, error) {
	var lost error
	for range attempts {
		if ctx.Err() != nil {
			return nil, failed(unclear, lost, context.Cause(ctx))
		}
		reply, err := script.Run(ctx, s.client, keys, args...).Slice()
		if err == nil {
			return reply, nil
		}
		if classify(err) != lostAnswer {
			return nil, failed(unclear, lost, err)
		}
		lost = err
	}
	return nil, failed(unclear, lost, nil)
}

// caller is call, or what takes its place.
type caller func(ctx context.Context, unclear error, script *script, keys []string, args ...any) ([]any, error)

// firstOf is a call whose answer came with the lease, if it did.
func (s *Store) firstOf(lease lock.Lease) caller {
	return func(ctx context.Context, unclear error, script *script, keys []string, args ...any) ([]any, error) {
		if answer, ran := lock.First(lease); ran {
			reply, ok := answer.([]any)
			if !ok || len(reply) == 0 {
				return nil, unexpected(answer)
			}
			return reply, nil
		}
		return s.call(ctx, unclear, script, keys, args...)
	}
}

// lastOf is a call that ends the lease as well, if it can.
func (s *Store) lastOf(lease lock.Lease) caller {
	return func(ctx context.Context, unclear error, script *script, keys []string, args ...any) ([]any, error) {
		if ctx.Err() != nil {
			return nil, failed(unclear, nil, context.Cause(ctx))
		}
		answer, err := lock.ReleaseAfter(ctx, lease, lock.Step{On: s.client, Script: script.text, Keys: keys, Args: args})
		if errors.Is(err, errors.ErrUnsupported) {
			return s.call(ctx, unclear, script, keys, args...)
		}
		switch reply, ok := answer.([]any); {
		case err == nil && ok:
			return reply, nil
		case err == nil:
			return nil, unexpected(answer)
		case errors.Is(err, lock.ErrLost) || classify(err) != lostAnswer:
			return nil, failed(unclear, nil, err)
		default:
			return nil, failed(unclear, err, nil)
		}
	}
}

// failed is the error of a call that ended with last after an answer was lost,
// or after none was (nil).
func failed(unclear, lost, last error) error {
	switch {
	case lost == nil:
		return unavailable(last)
	case last == nil:
		return fmt.Errorf("redisstock: %w: %w", unclear, lost)
	default:
		return fmt.Errorf("redisstock: %w: %w, then %w", unclear, lost, last)
	}
}

// unavailable is the error of what was not executed, or did no harm if it was.
func unavailable(err error) error {
	return fmt.Errorf("redisstock: %w: %w", stock.ErrUnavailable, err)
}
