package redisstock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// guardedCounter is the counter that reads, decides in Go and writes.
//
// Protects against: repeated requests, and outlived holders when it gets a fence.
// Still fails when: two callers are between read and write at once.
// Fixed by: a lock around Deduct, or the atomic counter.
type guardedCounter struct{ *Store }

// Guarded is the counter that needs a lock around it.
func (s *Store) Guarded() stock.Counter { return guardedCounter{s} }

var _ stock.Fusing = guardedCounter{}

// Deduct reads what the batch depends on, decides, and writes the result.
func (g guardedCounter) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	return g.deduct(ctx, fence, batch, g.call, g.call)
}

// First is the read of a batch, which is told the fence when it runs.
func (g guardedCounter) First(batch []stock.Deduction) (lock.Step, error) {
	saleID, err := saleOf(batch)
	if err != nil {
		return lock.Step{}, err
	}
	return lock.Step{On: g.client, Script: guardedReadScript.text, Keys: g.readKeys(saleID), Args: readArgs(batch)}, nil
}

// DeductAndLeave is Deduct whose read may have been the lease's first step, and
// whose write is its last.
func (g guardedCounter) DeductAndLeave(ctx context.Context, lease lock.Lease, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	read := g.call
	if fence != 0 && fence == lease.Fence() { // what it was read by
		read = g.firstOf(lease)
	}
	return g.deduct(ctx, fence, batch, read, g.lastOf(lease))
}

func (g guardedCounter) deduct(ctx context.Context, fence uint64, batch []stock.Deduction, read, write caller) ([]stock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	saleID, err := saleOf(batch)
	if err != nil {
		return nil, err
	}
	standing, err := g.read(ctx, read, saleID, fence, batch)
	if err != nil {
		return nil, err
	}
	results := standing.Decide(fence, batch)
	if err := g.write(ctx, write, saleID, fence, batch, results); err != nil {
		return nil, err
	}
	return results, nil
}

func (g guardedCounter) readKeys(saleID string) []string { return g.deductKeys(saleID)[:3] }

// readArgs is what the read is told after the fence.
func readArgs(batch []stock.Deduction) []any {
	args := make([]any, 0, 2*len(batch))
	for _, d := range batch {
		args = append(args, d.PurchaseID, d.UserID)
	}
	return args
}

func (g guardedCounter) read(ctx context.Context, call caller, saleID string, fence uint64, batch []stock.Deduction) (stock.Standing, error) {
	reply, err := call(ctx, stock.ErrUnavailable, guardedReadScript, g.readKeys(saleID), append([]any{fence}, readArgs(batch)...)...)
	if err != nil {
		return stock.Standing{}, err
	}
	switch reply[0] {
	case "missing":
		return stock.Standing{}, notFound(saleID)
	case "stale":
		return stock.Standing{}, stale(saleID)
	}
	if len(reply) != 3+2*len(batch) {
		return stock.Standing{}, unexpected(reply)
	}
	return parseStanding(reply, batch)
}

func parseStanding(reply []any, batch []stock.Deduction) (stock.Standing, error) {
	remaining, err1 := strconv.ParseInt(fmt.Sprint(reply[1]), 10, 64)
	limit, err2 := strconv.ParseInt(fmt.Sprint(reply[2]), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return stock.Standing{}, unavailable(err)
	}
	standing := stock.Standing{
		State: stock.State(fmt.Sprint(reply[0])), Remaining: remaining, Limit: limit,
		Known: make(map[string]stock.Answer), Buyers: make(map[string]string),
	}
	for i, d := range batch {
		if text, ok := reply[3+2*i].(string); ok {
			known, err := parseKnown(d.PurchaseID, text)
			if err != nil {
				return stock.Standing{}, err
			}
			standing.Known[d.PurchaseID] = known
		}
		if id, ok := reply[4+2*i].(string); ok {
			standing.Buyers[d.UserID] = id
		}
	}
	return standing, nil
}

// write stores what is accepted in results, and corrects results where the
// purchase turns out to have been stored meanwhile, or the sale to have ended.
func (g guardedCounter) write(ctx context.Context, call caller, saleID string, fence uint64, batch []stock.Deduction, results []stock.Result) error {
	args := []any{fence, nil} // nil: remaining, known after the loop
	var accepted []int
	for i, result := range results {
		if result.Err != nil || result.Replayed {
			continue
		}
		d := batch[i]
		text, err1 := wholeAnswer(d, fence, result.Remaining)
		event, err2 := eventOf(d, fence)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		args[1] = result.Remaining
		accepted = append(accepted, i)
		args = append(args, d.PurchaseID, d.UserID, d.Quantity, text, event)
	}
	if len(accepted) == 0 {
		return nil
	}

	stored, err := g.writeAccepted(ctx, call, guardedWriteScript, saleID, args, results, accepted)
	if err != nil || stored == nil {
		return err
	}
	return replay(stored, batch, results, accepted)
}

// writeAccepted runs a script that stores the accepted ones of results, and
// returns what it answers for each of them; nil when the sale isn't open any more,
// which results then say.
func (s *Store) writeAccepted(ctx context.Context, call caller, script *script, saleID string, args []any, results []stock.Result, accepted []int) ([]any, error) {
	reply, err := call(ctx, stock.ErrOutcomeUnknown, script, s.deductKeys(saleID), args...)
	if err != nil {
		return nil, err
	}
	switch reply[0] {
	case "missing":
		return nil, notFound(saleID)
	case "stale":
		return nil, stale(saleID)
	case string(stock.StateScheduled), string(stock.StateClosed):
		refuse(results, accepted, stock.State(fmt.Sprint(reply[0])))
		return nil, nil
	}
	if len(reply) != 1+len(accepted) {
		return nil, unexpected(reply)
	}
	return reply[1:], nil
}

// refuse turns acceptances into the refusal of a sale that is not open.
func refuse(results []stock.Result, accepted []int, state stock.State) {
	for _, i := range accepted {
		results[i] = stock.Result{Err: stock.ErrSaleClosed}
		if state == stock.StateScheduled {
			results[i].Err = stock.ErrSaleNotStarted
		}
	}
}

// replay turns acceptances of what had been stored before into what was
// answered then.
func replay(stored []any, batch []stock.Deduction, results []stock.Result, accepted []int) error {
	for n, i := range accepted {
		text, _ := stored[n].(string)
		if text == "" {
			continue
		}
		known, err := parseKnown(batch[i].PurchaseID, text)
		if err != nil {
			return err
		}
		results[i] = known.Replay(batch[i].Quantity)
	}
	return nil
}
