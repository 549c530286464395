package httpapi

import (
	"net/http"
	"strings"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

// route is one line of the interface. The engine serves it, the OpenAPI
// document describes it, the tests hold both against it.
type route struct {
	method, path string
	name         string // operationId
	summary      string
	admin        bool
	outcome      bool // says X-Outcome
	id           *pathID
	query        []field
	anyQuery     bool // probes may add what they like
	headers      []field
	body         []field
	bodyless     bool                   // no body is as good as {}
	check        func(input, *problems) // what no single field shows

	status int
	reply  any      // an empty value of the body of status
	codes  []string // beside those that follow from the rest of the line
	handle func(*gin.Context, input) error
}

// pathID is the {id} of a path.
type pathID struct {
	valid   func(string) bool
	missing error // that there is none of it
}

var (
	saleID     = &pathID{stock.ValidID, stock.ErrSaleNotFound}
	purchaseID = &pathID{func(id string) bool { _, ok := stock.SaleOf(id); return ok }, stock.ErrPurchaseNotFound}
)

func (a *api) routeTable() []route {
	return []route{
		{method: http.MethodPost, path: "/v1/sales", name: "createSale", summary: "Create a sale, or complete its creation",
			admin: true, body: saleFields(a.Variants, a.Lacking), check: checkSale,
			status: 201, reply: saleBody{}, codes: []string{"sale_exists", "unavailable", "outcome_unknown"}, handle: a.createSale},
		{method: http.MethodGet, path: "/v1/sales", name: "listSales", summary: "List sales by ID",
			query: pageQuery, status: 200, reply: salesBody{}, codes: []string{"unavailable"}, handle: a.listSales},
		{method: http.MethodGet, path: "/v1/sales/{id}", name: "getSale", summary: "A sale as it stands",
			id: saleID, status: 200, reply: saleBody{}, codes: []string{"unavailable"}, handle: a.getSale},
		{method: http.MethodPost, path: "/v1/sales/{id}/close", name: "closeSale", summary: "End a sale; repeating it changes nothing",
			admin: true, id: saleID, body: []field{}, bodyless: true,
			status: 200, reply: saleBody{}, codes: []string{"unavailable", "outcome_unknown"}, handle: a.closeSale},
		{method: http.MethodPost, path: "/v1/sales/{id}/purchases", name: "purchase", summary: "Buy",
			outcome: true, id: saleID, headers: purchaseHeaders, body: purchaseFields,
			status: 201, reply: receiptBody{},
			codes: []string{"sold_out", "already_bought", "sale_closed", "sale_not_started", "idempotency_key_reused", "busy",
				"unavailable", "lock_lost", "outcome_unknown"},
			handle: a.purchase},
		{method: http.MethodGet, path: "/v1/sales/{id}/purchases", name: "listPurchases", summary: "A buyer's own purchases in a sale",
			id: saleID, query: userQuery, status: 200, reply: purchasesBody{}, codes: []string{"unavailable"}, handle: a.listPurchases},
		{method: http.MethodGet, path: "/v1/purchases/{id}", name: "getPurchase", summary: "What became of an accepted purchase",
			id: purchaseID, status: 200, reply: purchaseBody{}, codes: []string{"unavailable"}, handle: a.getPurchase},
		{method: http.MethodGet, path: "/v1/sales/{id}/audit", name: "auditSale", summary: "Whether any unit was sold twice or lost",
			id: saleID, query: auditQuery, status: 200, reply: stock.Audit{}, codes: []string{"unavailable"}, handle: a.audit},
		{method: http.MethodGet, path: "/healthz", name: "healthz", summary: "Whether the process runs",
			anyQuery: true, status: 200, reply: healthBody{}, handle: a.healthz},
		{method: http.MethodGet, path: "/readyz", name: "readyz", summary: "Whether the process should get requests",
			anyQuery: true, status: 200, reply: readyBody{}, codes: []string{"unavailable", "draining"}, handle: a.readyz},
		{method: http.MethodGet, path: "/openapi.json", name: "openapi", summary: "This document",
			anyQuery: true, status: 200, handle: a.openapi},
	}
}

// allCodes are the codes of the errors that r can answer with.
func (r route) allCodes() []string {
	codes := append([]string{"internal"}, r.codes...)
	if r.admin {
		codes = append(codes, Outcome(errUnauthorized))
	}
	if r.id != nil {
		codes = append(codes, Outcome(r.id.missing))
	}
	if r.body != nil {
		codes = append(codes, Outcome(errMalformed), Outcome(errTooLarge), Outcome(errMediaType))
	}
	if !r.anyQuery {
		codes = append(codes, Outcome(&stock.InvalidError{}))
	}
	return codes
}

// ginPath writes {id} the way gin does.
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
