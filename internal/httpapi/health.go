package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

// checkTimeout bounds one ping of /readyz.
const checkTimeout = time.Second

type healthBody struct {
	Status string `json:"status"`
}

type readyBody struct {
	Status string   `json:"status"` // ready, or degraded when something is away that selling can do without
	Away   []string `json:"away"`   // names of the servers that did not answer
}

func (a *api) healthz(c *gin.Context, _ input) error {
	return reply(c, http.StatusOK, healthBody{Status: "ok"})
}

// readyz is 503 only when no request could be served well: purchases need Redis
// alone, so that Kafka or the database away is "degraded", with status 200.
func (a *api) readyz(c *gin.Context, _ input) error {
	if a.Draining() {
		return errDraining
	}
	errs := make([]error, len(a.Checks))
	var wg sync.WaitGroup
	for i, check := range a.Checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.Request.Context(), checkTimeout)
			defer cancel()
			errs[i] = check.Ping(ctx)
		})
	}
	wg.Wait()
	body := readyBody{Status: "ready", Away: []string{}}
	var needed error
	for i, check := range a.Checks {
		if errs[i] == nil {
			continue
		}
		body.Status, body.Away = "degraded", append(body.Away, check.Name)
		if check.Required {
			needed = fmt.Errorf("%w: %s: %w", stock.ErrUnavailable, check.Name, errs[i])
		}
	}
	if needed != nil {
		return detailed(needed, "Not reachable: "+join(body.Away)+".")
	}
	return reply(c, http.StatusOK, body)
}
