package redisstock

import (
	"context"
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
	args, err := atomicArgs(fence, batch)
	if err != nil {
		return nil, err
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
	results, err := decided(batch, fence, reply)
	if err != nil { // it was executed, whatever it says
		return nil, fmt.Errorf("%w: %w", stock.ErrOutcomeUnknown, err)
	}
	return results, nil
}

// atomicArgs are the fence, the outbox entry as if all were accepted, the lengths of
// its events, and then a column each of the batch's purchase IDs, users, quantities
// and open answers. Every string that Lua gets to see costs: the entry is handed
// on as it is, nearly always, and so are the columns.
func atomicArgs(fence uint64, batch []stock.Deduction) ([]any, error) {
	// Arguments are pointers, and answers are cut out of one text: a purchase of the
	// batch needs no memory of its own.
	n := len(batch)
	answers, ends := make([]byte, 0, answerSize*n), make([]int, n)
	entry, lengths := make([]byte, 0, eventSize*n), make([]byte, 0, 4*n)
	for i, d := range batch {
		var err error
		if answers, err = appendOpenAnswer(answers, d, fence); err != nil {
			return nil, err
		}
		ends[i] = len(answers)
		entry = append(entry, "[,"[min(i, 1)])
		start := len(entry)
		if entry, err = appendEvent(entry, d, fence); err != nil {
			return nil, err
		}
		lengths = append(strconv.AppendInt(lengths, int64(len(entry)-start), 10), ' ')
	}
	args := make([]any, 3+4*n)
	args[0], args[1], args[2] = fence, append(entry, ']'), lengths
	ids, users, quantities, texts := args[3:], args[3+n:], args[3+2*n:], args[3+3*n:]
	whole, start := string(answers), 0
	pieces := make([]string, n)
	for i := range batch {
		d := &batch[i]
		pieces[i], start = whole[start:ends[i]], ends[i]
		ids[i], users[i], quantities[i], texts[i] = &d.PurchaseID, &d.UserID, &d.Quantity, &pieces[i]
	}
	return args, nil
}

// decided reads what the script answers about a batch: the units that are left
// after it, and a verdict on each purchase that was not accepted just now. The
// others are counted back from what is left.
func decided(batch []stock.Deduction, fence uint64, reply []any) ([]stock.Result, error) {
	if len(reply) < 2 || len(reply)%3 != 2 {
		return nil, unexpected(reply)
	}
	left, ok := reply[1].(int64)
	if !ok {
		return nil, unexpected(reply)
	}
	results, others := make([]stock.Result, len(batch)), reply[2:]
	for i := len(batch) - 1; i >= 0; i-- {
		if last := len(others) - 3; last >= 0 && others[last] == int64(i+1) {
			verdict, _ := others[last+1].(string)
			var err error
			if results[i], err = parseVerdict(batch[i], verdict, others[last+2]); err != nil {
				return nil, err
			}
			others = others[:last]
			continue
		}
		results[i] = stock.Result{Remaining: left, Fence: fence}
		left += batch[i].Quantity
	}
	if len(others) > 0 {
		return nil, unexpected(reply)
	}
	return results, nil
}

func parseVerdict(d stock.Deduction, verdict string, detail any) (stock.Result, error) {
	text, _ := detail.(string)
	number, _ := detail.(int64)
	switch verdict {
	case "known":
		known, err := parseKnown(d.PurchaseID, text)
		return known.Replay(d.Quantity), err
	case "already_bought":
		return stock.Result{Err: &stock.AlreadyBoughtError{PurchaseID: text}}, nil
	case "scheduled":
		return stock.Result{Err: stock.ErrSaleNotStarted}, nil
	case "closed":
		return stock.Result{Err: stock.ErrSaleClosed}, nil
	case "over_limit":
		return stock.Result{Err: &stock.OverLimitError{Limit: number}}, nil
	case "sold_out":
		return stock.Result{Err: stock.ErrSoldOut}, nil
	default:
		return stock.Result{}, unexpected(verdict)
	}
}
