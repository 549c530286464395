package redisstock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"flashsale/internal/stock"
)

// atomicCounter is the counter that is one script.
//
// Protects against: overselling, lost updates and repeated requests, by itself.
// Still fails when: Redis loses what it acknowledged (a failover, say).
// Fixed by: the ledger, which settles each purchase once more.
type atomicCounter struct{ *Store }

// Atomic is the counter that needs no lock.
func (s *Store) Atomic() stock.Counter { return atomicCounter{s} }

// Deduct decides and writes in one step.
func (a atomicCounter) Deduct(ctx context.Context, fence uint64, batch []stock.Deduction) ([]stock.Result, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	saleID, err := saleOf(batch)
	if err != nil {
		return nil, err
	}
	args := []any{fence}
	for _, d := range batch {
		text, err1 := openAnswer(d, fence)
		event, err2 := eventOf(d, fence)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		args = append(args, d.PurchaseID, d.UserID, d.Quantity, text, event)
	}
	reply, err := a.call(ctx, stock.ErrOutcomeUnknown, atomicScript, a.deductKeys(saleID), args...)
	if err != nil {
		return nil, err
	}
	switch reply[0] {
	case "missing":
		return nil, notFound(saleID)
	case "stale":
		return nil, stale(saleID)
	}
	if len(reply) != 1+2*len(batch) {
		return nil, unexpected(reply)
	}
	results := make([]stock.Result, len(batch))
	for i, d := range batch {
		verdict, detail := fmt.Sprint(reply[1+2*i]), fmt.Sprint(reply[2+2*i])
		if results[i], err = parseVerdict(d, fence, verdict, detail); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func parseVerdict(d stock.Deduction, fence uint64, verdict, detail string) (stock.Result, error) {
	switch verdict {
	case "accepted":
		remaining, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return stock.Result{}, unexpected(detail)
		}
		return stock.Result{Remaining: remaining, Fence: fence}, nil
	case "known":
		known, err := parseKnown(d.PurchaseID, detail)
		return known.Replay(d.Quantity), err
	case "already_bought":
		return stock.Result{Err: &stock.AlreadyBoughtError{PurchaseID: detail}}, nil
	case "scheduled":
		return stock.Result{Err: stock.ErrSaleNotStarted}, nil
	case "closed":
		return stock.Result{Err: stock.ErrSaleClosed}, nil
	case "over_limit":
		limit, err := strconv.ParseInt(detail, 10, 64)
		if err != nil {
			return stock.Result{}, unexpected(detail)
		}
		return stock.Result{Err: &stock.OverLimitError{Limit: limit}}, nil
	case "sold_out":
		return stock.Result{Err: stock.ErrSoldOut}, nil
	default:
		return stock.Result{}, unexpected(verdict)
	}
}
