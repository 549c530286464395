package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// authorize wants exactly one Authorization header with the admin token. The
// hashes are compared, in constant time: neither content nor length of the
// token shows in how long it takes.
func (a *api) authorize(r *http.Request) error {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return errUnauthorized
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return errUnauthorized
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(a.AdminToken))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return errUnauthorized
	}
	return nil
}
