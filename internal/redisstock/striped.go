package redisstock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// segments is into how many parts a striped sale's units are split.
const segments = 8

// stripedCounter is the guarded counter with a lock for each eighth of the
// units, so that eight buyers can be served at once. A buyer's segment is a hash
// of the name. One that has too little takes from others, under the locks of
// both, in the order of their numbers; it is sold out when all are.
//
// Protects against: what the guarded counter does, with an eighth of the contention.
// Still fails when: the locks do, and a holder writes that has been outlived.
// Fixed by: the fence of each segment's lock.
type stripedCounter struct {
	*Store
	locker lock.Locker
}

// Striped is the counter that locks by itself what it needs, with locker: keys
// "<sale_id>.0" to "<sale_id>.7". The fences of these locks are checked, but no
// Result carries one: there may be several.
func (s *Store) Striped(locker lock.Locker) stock.Counter { return stripedCounter{s, locker} }

// Deduct locks the buyers' segments, and more of them for as long as that would
// let it accept more. It is stock.ErrBusy when it does not get a lock.
func (s stripedCounter) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	saleID, err := saleOf(batch)
	if err != nil {
		return nil, err
	}
	held := map[int]uint64{} // segment -> fence
	for _, d := range batch {
		held[segmentOf(d.UserID)] = 0
	}
	for {
		var results []stock.Result
		var more []int
		began := false
		err := s.under(ctx, saleID, slices.Sorted(maps.Keys(held)), held, func(ctx context.Context) (err error) {
			began = true
			results, more, err = s.deduct(ctx, fence, saleID, batch, held)
			return err
		})
		switch {
		case err != nil && !began:
			return nil, notLocked(err)
		case errors.Is(err, lock.ErrLost) && !errors.Is(err, stock.ErrOutcomeUnknown):
			return nil, fmt.Errorf("%w: %w", stale(saleID), err)
		case err != nil || len(more) == 0:
			return results, err
		}
		for _, segment := range more {
			held[segment] = 0
		}
	}
}

func notLocked(err error) error {
	if errors.Is(err, lock.ErrNotAcquired) {
		return fmt.Errorf("redisstock: %w: %w", stock.ErrBusy, err)
	}
	return unavailable(err)
}

// under runs fn while it holds these segments' locks.
func (s stripedCounter) under(ctx context.Context, saleID string, rest []int, held map[int]uint64, fn func(context.Context) error) error {
	if len(rest) == 0 {
		return fn(ctx)
	}
	return lock.Do(ctx, s.locker, saleID+"."+strconv.Itoa(rest[0]), func(ctx context.Context, lease lock.Lease) error {
		held[rest[0]] = lease.Fence()
		return s.under(ctx, saleID, rest[1:], held, fn)
	})
}

// deduct decides with what the held segments have. If all segments together
// would let it accept more, it does nothing and says which to hold as well.
func (s stripedCounter) deduct(ctx context.Context, fence uint64, saleID string, batch []stock.Deduction, held map[int]uint64) (results []stock.Result, more []int, err error) {
	args := []any{fence, segments, len(held)}
	for segment, held := range held {
		args = append(args, segment, held)
	}
	for _, d := range batch {
		args = append(args, d.PurchaseID, d.UserID)
	}
	keys := s.deductKeys(saleID)
	reply, err := s.call(ctx, stock.ErrUnavailable, stripedReadScript, keys[:3], args...)
	if err != nil {
		return nil, nil, err
	}
	switch reply[0] {
	case "missing":
		return nil, nil, notFound(saleID)
	case "stale":
		return nil, nil, stale(saleID)
	}
	if len(reply) != 2+segments+2*len(batch) {
		return nil, nil, unexpected(reply)
	}
	var units [segments]int64
	total, here := int64(0), int64(0)
	for n := range units {
		if units[n], err = strconv.ParseInt(fmt.Sprint(reply[2+n]), 10, 64); err != nil {
			return nil, nil, unexpected(reply)
		}
		total += units[n]
		if _, ok := held[n]; ok {
			here += units[n]
		}
	}
	standing, err := parseStanding(slices.Concat([]any{reply[0], total, reply[1]}, reply[2+segments:]), batch)
	if err != nil {
		return nil, nil, err
	}
	results = standing.Decide(fence, batch)
	wanted := int64(0)
	for i, result := range results {
		if result.Err == nil && !result.Replayed {
			wanted += batch[i].Quantity
		}
	}
	if wanted > here {
		return nil, donors(units, held, wanted-here), nil
	}
	return results, nil, s.write(ctx, fence, batch, results, share(units, held, batch, results), held)
}

// donors are the segments not held, the fullest first, that have the units.
func donors(units [segments]int64, held map[int]uint64, lacking int64) (more []int) {
	for lacking > 0 {
		fullest := -1
		for n := range units {
			if _, ok := held[n]; !ok && !slices.Contains(more, n) && (fullest < 0 || units[n] > units[fullest]) {
				fullest = n
			}
		}
		if fullest < 0 {
			return more
		}
		more = append(more, fullest)
		lacking -= units[fullest]
	}
	return more
}

// share takes what is accepted from its buyer's segment, and what that lacks
// from the fullest of the others that are held, with half of what is left there.
func share(units [segments]int64, held map[int]uint64, batch []stock.Deduction, results []stock.Result) [segments]int64 {
	for i, result := range results {
		if result.Err != nil || result.Replayed {
			continue
		}
		own := segmentOf(batch[i].UserID)
		units[own] -= batch[i].Quantity
		for units[own] < 0 {
			fullest := -1
			for n := range held {
				if n != own && (fullest < 0 || units[n] > units[fullest]) {
					fullest = n
				}
			}
			taken := min(units[fullest], -units[own])
			taken += (units[fullest] - taken) / 2
			units[fullest] -= taken
			units[own] += taken
		}
	}
	return units
}

func (s stripedCounter) write(ctx context.Context, fence uint64, batch []stock.Deduction, results []stock.Result, units [segments]int64, held map[int]uint64) error {
	args := []any{fence, segments, len(held)}
	for segment, held := range held {
		args = append(args, segment, held, units[segment])
	}
	var accepted []int
	for i, result := range results {
		if result.Err != nil || result.Replayed {
			continue
		}
		d := batch[i]
		text, err1 := openAnswer(d, fence)
		event, err2 := eventOf(d, fence)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		accepted = append(accepted, i)
		args = append(args, d.PurchaseID, d.UserID, d.Quantity, text, event)
	}
	if len(accepted) == 0 {
		return nil
	}
	stored, err := s.writeAccepted(ctx, s.call, stripedWriteScript, batch[0].SaleID, args, results, accepted)
	if err != nil || stored == nil {
		return err
	}
	left := map[string]int64{} // purchase ID -> what it left
	for n, i := range accepted {
		known, err := parseKnown(batch[i].PurchaseID, fmt.Sprint(stored[n]))
		if err != nil {
			return err
		}
		results[i].Remaining, results[i].Fence = known.Remaining, known.Fence
		left[batch[i].PurchaseID] = known.Remaining
	}
	for i, result := range results {
		if remaining, ok := left[batch[i].PurchaseID]; ok && result.Replayed { // twice in this batch
			results[i].Remaining = remaining
		}
	}
	return nil
}

func segmentOf(userID string) int {
	h := fnv.New32a()
	h.Write([]byte(userID)) // never fails
	return int(h.Sum32() % segments)
}
