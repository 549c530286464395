package redisstock

import (
	"encoding/json"
	"fmt"
	"strings"
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

// wholeAnswer is the JSON to store for an accepted deduction.
func wholeAnswer(d stock.Deduction, fence uint64, remaining int64) (string, error) {
	text, err := json.Marshal(answer{
		User: d.UserID, Quantity: d.Quantity, State: stateAccepted,
		PriceCents: d.PriceCents, Fence: fence, At: d.At, Remaining: remaining,
	})
	if err != nil {
		return "", fmt.Errorf("redisstock: answer of %s: %w", d.PurchaseID, err)
	}
	return string(text), nil
}

// openAnswer is the same for a script that works out the remaining units by
// itself: it lacks that last member and the closing brace. Lua is not left to
// write the rest, because its JSON has 14 digits and a fence has 16.
func openAnswer(d stock.Deduction, fence uint64) (string, error) {
	text, err := wholeAnswer(d, fence, 0)
	return strings.TrimSuffix(text, `,"remaining":0}`), err
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
