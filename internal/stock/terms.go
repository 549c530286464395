package stock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Sales reads sales; every Counter can.
type Sales interface {
	Snapshot(ctx context.Context, saleID string) (Snapshot, error)
}

const (
	termsLifetime = time.Second
	termsTimeout  = 3 * time.Second
	termsMax      = 1024
)

// termsCache saves the purchase path a round trip: a sale's terms never change
// while it exists. What does change (remaining, closed) is judged by the counter
// each time, so an entry that is a second old cannot sell anything wrongly.
type termsCache struct {
	sales Sales
	now   func() time.Time

	mu      sync.Mutex
	entries map[string]*termsEntry
}

// termsEntry is one sale's terms; the fields below done are set once it is closed.
type termsEntry struct {
	done    chan struct{}
	sale    Sale
	err     error
	expires time.Time
}

func newTermsCache(sales Sales, now func() time.Time) *termsCache {
	return &termsCache{sales: sales, now: now, entries: make(map[string]*termsEntry)}
}

// get returns a sale's terms. Callers that miss at the same time share one
// read, which none of them can cancel for the others. Errors are not kept: a
// sale that is not there now may be created the next moment.
func (c *termsCache) get(ctx context.Context, saleID string) (Sale, error) {
	c.mu.Lock()
	entry := c.entries[saleID]
	if entry == nil || entry.expired(c.now()) {
		entry = &termsEntry{done: make(chan struct{})}
		c.makeRoom()
		c.entries[saleID] = entry
		go c.load(context.WithoutCancel(ctx), saleID, entry)
	}
	c.mu.Unlock()

	select {
	case <-entry.done:
		return entry.sale, entry.err
	case <-ctx.Done():
		return Sale{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (c *termsCache) load(ctx context.Context, saleID string, entry *termsEntry) {
	ctx, cancel := context.WithTimeout(ctx, termsTimeout)
	defer cancel()
	snapshot, err := c.sales.Snapshot(ctx, saleID)

	c.mu.Lock()
	defer c.mu.Unlock()
	entry.sale, entry.err = snapshot.Sale, err
	entry.expires = c.now().Add(termsLifetime)
	close(entry.done)
	if err != nil && c.entries[saleID] == entry {
		delete(c.entries, saleID)
	}
}

// expired is called with the cache's lock held. What is loading is not expired.
func (e *termsEntry) expired(now time.Time) bool {
	select {
	case <-e.done:
		return !now.Before(e.expires)
	default:
		return false
	}
}

// makeRoom keeps the cache within termsMax entries: the expired ones go, and if
// none is, any one. Who waits for an entry holds it, so none is lost on them.
func (c *termsCache) makeRoom() {
	if len(c.entries) < termsMax {
		return
	}
	now := c.now()
	for id, entry := range c.entries {
		if entry.expired(now) {
			delete(c.entries, id)
		}
	}
	for id := range c.entries {
		if len(c.entries) < termsMax {
			return
		}
		delete(c.entries, id)
	}
}
