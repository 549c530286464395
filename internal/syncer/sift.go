package syncer

import "flashsale/internal/stock"

// The reasons that the ledger finds, not the decoder.
const (
	reasonUnknownSale = "unknown_sale"
	reasonRefused     = "refused_by_ledger"
)

// sifted is a batch with the poison apart, so that one bad message doesn't
// stand in the way of the others.
type sifted struct {
	messages []stock.Message
	events   []stock.Event
	from     []int    // the message that each event came from
	reasons  []string // of each message: why it is poison, "" if it isn't
}

func sift(messages []stock.Message) sifted {
	s := sifted{
		messages: messages,
		events:   make([]stock.Event, 0, len(messages)),
		from:     make([]int, 0, len(messages)),
		reasons:  make([]string, len(messages)),
	}
	for i, message := range messages {
		event, reason := decode(message.Value)
		if reason != "" {
			s.poison(i, reason)
			continue
		}
		s.events = append(s.events, event)
		s.from = append(s.from, i)
	}
	return s
}

func (s sifted) poison(message int, reason string) { s.reasons[message] = reason }
