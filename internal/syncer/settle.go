package syncer

import (
	"context"
	"errors"
	"fmt"

	"flashsale/internal/stock"
)

// VerdictRefused is the syncer's own: the ledger answered that the event can't
// be stored at all, whenever it is tried. The decoder should have found it.
const VerdictRefused stock.Verdict = "refused"

// settle has events settled in one transaction. When the ledger calls the batch
// invalid, one event of it stands in the way of the others: the batch is halved,
// in order, until that one is alone and can be refused.
func (s *Syncer) settle(ctx, work context.Context, events []stock.Event) ([]stock.Verdict, error) {
	if len(events) == 0 {
		return nil, nil
	}
	verdicts, err := s.settleAtOnce(ctx, work, events)
	var invalid *stock.InvalidError
	switch {
	case err == nil:
		return verdicts, nil
	case !errors.As(err, &invalid):
		return nil, err
	case len(events) == 1:
		s.options.Logger.Error("event refused by the ledger", "purchase", events[0].PurchaseID, "error", err)
		return []stock.Verdict{VerdictRefused}, nil
	}
	half := len(events) / 2
	first, err := s.settle(ctx, work, events[:half])
	if err != nil {
		return nil, err
	}
	second, err := s.settle(ctx, work, events[half:])
	if err != nil {
		return nil, err
	}
	return append(first, second...), nil
}

// settleAtOnce waits for the ledger, however long it takes. Its error is a
// *stock.InvalidError or says that ctx has ended.
func (s *Syncer) settleAtOnce(ctx, work context.Context, events []stock.Event) (verdicts []stock.Verdict, err error) {
	var refusal error
	err = s.insist(ctx, work, "settle", s.bounded(func(ctx context.Context) error {
		settled, err := s.options.Ledger.Settle(ctx, events)
		var invalid *stock.InvalidError
		switch {
		case errors.As(err, &invalid):
			refusal = err
			return nil // trying again would not help
		case err == nil && len(settled) != len(events):
			return fmt.Errorf("syncer: %d verdicts on %d events", len(settled), len(events))
		}
		verdicts = settled
		return err
	}))
	if err == nil {
		err = refusal
	}
	return verdicts, err
}
