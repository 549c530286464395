package app

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// readyTimeout bounds what /readyz asks of a server.
const readyTimeout = time.Second

// readiness is the body of /healthz and /readyz on the admin listener.
type readiness struct {
	Status string   `json:"status"`         // ok; ready or unavailable
	Away   []string `json:"away,omitempty"` // names of the servers that did not answer
}

// ready answers 503 while a server is away without which the program can do
// nothing. The API has a /readyz of its own, for those who send it buyers.
func ready(needed []dependency) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		errs := make([]error, len(needed))
		var all sync.WaitGroup
		for i, d := range needed {
			all.Go(func() { errs[i] = d.check(ctx) })
		}
		all.Wait()
		status, body := http.StatusOK, readiness{Status: "ready"}
		for i, d := range needed {
			if errs[i] != nil {
				status, body.Status, body.Away = http.StatusServiceUnavailable, "unavailable", append(body.Away, d.name)
			}
		}
		answer(w, status, body)
	}
}

func answer(w http.ResponseWriter, status int, body readiness) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the connection's fault, if any
}
