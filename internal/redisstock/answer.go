package redisstock

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"flashsale/internal/stock"
)

// answer is what a purchase is kept as: enough to answer its repetition exactly
// as the first time. Remaining comes last, see openAnswer.
type answer struct {
	User       string    `json:"user"`
	Quantity   int64     `json:"quantity"`
	State      string    `json:"state"`
	PriceCents int64     `json:"price_cents"`
	Fence      uint64    `json:"fence"`
	At         time.Time `json:"at"`
	Remaining  int64     `json:"remaining"`
}

// stateAccepted is the state of a purchase that stands.
const stateAccepted = "accepted"

// wholeAnswer is the JSON to store for an accepted deduction: an answer.
func wholeAnswer(d stock.Deduction, fence uint64, remaining int64) (string, error) {
	text, err := appendOpenAnswer(make([]byte, 0, answerSize), d, fence)
	text = append(strconv.AppendInt(append(text, `,"remaining":`...), remaining, 10), '}')
	return string(text), err
}

// openAnswer is the same for a script that works out the remaining units by
// itself: it lacks that last member and the closing brace. Lua is not left to
// write the rest, because its JSON has 14 digits and a fence has 16.
func openAnswer(d stock.Deduction, fence uint64) (string, error) {
	text, err := appendOpenAnswer(make([]byte, 0, answerSize), d, fence)
	return string(text), err
}

// Room for an answer and for an event of ordinary length.
const answerSize, eventSize = 192, 384

// appendOpenAnswer writes what encoding/json would: every accepted purchase is
// written so.
func appendOpenAnswer(to []byte, d stock.Deduction, fence uint64) ([]byte, error) {
	to = stock.AppendText(append(to, `{"user":`...), d.UserID)
	to = strconv.AppendInt(append(to, `,"quantity":`...), d.Quantity, 10)
	to = strconv.AppendInt(append(to, `,"state":"`+stateAccepted+`","price_cents":`...), d.PriceCents, 10)
	to = strconv.AppendUint(append(to, `,"fence":`...), fence, 10)
	to, err := stock.AppendInstant(append(to, `,"at":`...), d.At)
	if err != nil {
		return nil, fmt.Errorf("redisstock: answer of %s: %w", d.PurchaseID, err)
	}
	return to, nil
}

func parseAnswer(purchaseID, text string) (answer, error) {
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return answer{}, unavailable(fmt.Errorf("stored answer of %s: %w", purchaseID, err))
	}
	return a, nil
}

// parseKnown is what the domain wants to know of a stored answer.
func parseKnown(purchaseID, text string) (stock.Answer, error) {
	a, err := parseAnswer(purchaseID, text)
	return stock.Answer{Quantity: a.Quantity, Remaining: a.Remaining, Fence: a.Fence}, err
}

func parsePurchase(saleID, purchaseID, text string) (stock.Purchase, error) {
	a, err := parseAnswer(purchaseID, text)
	return stock.Purchase{
		PurchaseID: purchaseID, SaleID: saleID, UserID: a.User,
		Quantity: a.Quantity, PriceCents: a.PriceCents, Fence: a.Fence,
		Status: stock.StatusPending, CreatedAt: a.At,
	}, err
}
