package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"flashsale/internal/lock"
	"flashsale/internal/stock"
)

// What the interface itself refuses.
var (
	errMalformed    = errors.New("httpapi: malformed JSON")
	errUnauthorized = errors.New("httpapi: no valid admin token")
	errNoRoute      = errors.New("httpapi: no such resource")
	errMethod       = errors.New("httpapi: method not allowed")
	errTooLarge     = errors.New("httpapi: request body too large")
	errMediaType    = errors.New("httpapi: not JSON")
	errInvalid      = errors.New("httpapi: invalid") // stands for every *stock.InvalidError
	errDraining     = errors.New("httpapi: draining")
	errInternal     = errors.New("httpapi: internal error") // stands for every error that no other line names
)

// outcome is one line of the table: how an error looks from outside.
type outcome struct {
	err    error
	status int
	code   string // stable: clients switch on it
	title  string
	detail string // nothing of the error's own text goes out, it may name hosts
}

// outcomes is the only place that turns an error into a status. The first line
// that matches counts, so that of several joined errors the one that promises
// least decides: an unknown outcome is never reported as "nothing deducted".
var outcomes = []outcome{
	{stock.ErrOutcomeUnknown, 503, "outcome_unknown", "Outcome unknown", "The answer of a store was lost. Repeat the request with the same Idempotency-Key to learn what became of it."},

	{errMalformed, 400, "malformed_json", "Malformed JSON", "The body is not one JSON value."},
	{errUnauthorized, 401, "unauthorized", "Unauthorized", "This needs the admin token: Authorization: Bearer TOKEN."},
	{errNoRoute, 404, "not_found", "Not found", "There is nothing at this path; /openapi.json lists what there is."},
	{stock.ErrSaleNotFound, 404, "sale_not_found", "Sale not found", "There is no sale of this ID."},
	{stock.ErrPurchaseNotFound, 404, "purchase_not_found", "Purchase not found", "There is no accepted purchase of this ID."},
	{errMethod, 405, "method_not_allowed", "Method not allowed", "The Allow header names the methods of this path."},
	{stock.ErrSoldOut, 409, "sold_out", "Sold out", "Fewer units are left than were asked for."},
	{stock.ErrAlreadyBought, 409, "already_bought", "Already bought", "This user has a purchase in this sale."},
	{stock.ErrSaleNotStarted, 409, "sale_not_started", "Sale not started", "The sale has not started yet."},
	{stock.ErrSaleClosed, 409, "sale_closed", "Sale closed", "The sale has ended."},
	{stock.ErrNotOnSale, 409, "sale_closed", "Sale closed", "The sale is not selling."},
	{stock.ErrSaleExists, 409, "sale_exists", "Sale exists", "A sale of this ID exists with other terms."},
	{stock.ErrSaleBegun, 409, "sale_exists", "Sale exists", "This sale has sold units, and Redis has lost it. Loading its whole stock would sell them twice, so nothing was changed; it can't be sold any further: offer what is left under another ID."},
	{stock.ErrSaleLost, 409, "sale_exists", "Sale exists", "This sale was loaded before, and Redis has lost it. What it sold may not be recorded, so nothing was changed; if it has sold nothing, flashsale preload --again loads it, else offer what is left under another ID."},
	{errTooLarge, 413, "too_large", "Body too large", "The body is longer than 16 KiB."},
	{errMediaType, 415, "unsupported_media_type", "Unsupported media type", "The body must be sent as Content-Type: application/json, in UTF-8, not compressed."},
	{errInvalid, 422, "invalid", "Invalid", "errors lists every field that is wrong and what is allowed."},
	{stock.ErrKeyReused, 422, "idempotency_key_reused", "Idempotency key reused", "This Idempotency-Key was used for another quantity."},

	{stock.ErrBusy, 423, "busy", "Busy", "Others hold the lock of this sale. Nothing was deducted; try again."},
	{lock.ErrNotAcquired, 423, "busy", "Busy", "Others hold the lock of this sale. Nothing was deducted; try again."},
	{stock.ErrStale, 503, "lock_lost", "Lock lost", "The lease ended before the work was done, and the late write was refused. Nothing was deducted; try again."},
	{lock.ErrLost, 503, "lock_lost", "Lock lost", "The lease ended before the work was done. Nothing was deducted; try again."},
	{stock.ErrUnavailable, 503, "unavailable", "Unavailable", "A store is away. Nothing was deducted; try again later."},
	{lock.ErrUnavailable, 503, "unavailable", "Unavailable", "The lock's store is away. Nothing was deducted; try again later."},
	{context.Canceled, 503, "unavailable", "Unavailable", "The request was given up."},
	{context.DeadlineExceeded, 503, "unavailable", "Unavailable", "A store did not answer in time."},
	{errDraining, 503, "draining", "Draining", "This process is shutting down."},

	{errInternal, 500, "internal", "Internal error", "The server made a mistake; its log says more."},
}

// outcomeOf finds the line of err.
func outcomeOf(err error) outcome {
	if _, ok := errors.AsType[*stock.InvalidError](err); ok || errors.Is(err, stock.ErrOverLimit) {
		err = errInvalid
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o
		}
	}
	return outcomes[len(outcomes)-1]
}

// Outcome names what became of a request: "accepted" when err is nil, else the
// code that the client gets. It is the X-Outcome header and a metric's label.
func Outcome(err error) string {
	if err == nil {
		return "accepted"
	}
	return outcomeOf(err).code
}

// Outcomes are all that Outcome returns.
func Outcomes() []string {
	all := []string{Outcome(nil)}
	for _, o := range outcomes {
		if !slices.Contains(all, o.code) {
			all = append(all, o.code)
		}
	}
	return all
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type       string             `json:"type"`
	Title      string             `json:"title"`
	Status     int                `json:"status"`
	Detail     string             `json:"detail"`
	Code       string             `json:"code"`
	Errors     []stock.FieldError `json:"errors,omitempty"`      // code invalid
	PurchaseID string             `json:"purchase_id,omitempty"` // code already_bought
}

func problemOf(err error) problem {
	o := outcomeOf(err)
	p := problem{Type: "urn:flashsale:problem:" + o.code, Title: o.title, Status: o.status, Detail: o.detail, Code: o.code}
	if d, ok := errors.AsType[*detailedError](err); ok {
		p.Detail = d.detail
	}
	if o.err == errInvalid {
		p.Errors = fieldErrors(err)
	}
	if bought, ok := errors.AsType[*stock.AlreadyBoughtError](err); ok && o.status == http.StatusConflict {
		p.PurchaseID = bought.PurchaseID
	}
	return p
}

func fieldErrors(err error) []stock.FieldError {
	if invalid, ok := errors.AsType[*stock.InvalidError](err); ok {
		return invalid.Fields
	}
	allowed := "1 to the sale's per_user_limit"
	if over, ok := errors.AsType[*stock.OverLimitError](err); ok {
		allowed = fmt.Sprintf("an integer from 1 to %d", over.Limit)
	}
	return []stock.FieldError{{Field: "quantity", Reason: "is above the sale's limit per user", Allowed: allowed}}
}

// detailedError is an error whose detail is worth telling the client.
type detailedError struct {
	error
	detail string
}

func (e *detailedError) Unwrap() error { return e.error }

func detailed(err error, detail string) error { return &detailedError{err, detail} }
