// Package httpapi is the HTTP interface: it binds a request, calls a port and
// maps what came back to a status. Three tables say everything that a client
// can rely on, and the code, the OpenAPI document and the tests all read them:
// routes.go (what can be asked), fields.go (what a request may hold) and
// errors.go (what each error looks like).
package httpapi
