// Package stocktest holds in-memory implementations of the stock package's
// ports, whose hooks tell "failed and not stored" from "failed, but stored",
// and the suites that every implementation of a port passes.
package stocktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"flashsale/internal/rediskey"
	"flashsale/internal/stock"
)

// Operations that a Memory's Hook is asked about.
const (
	OpPreload = "preload"
	OpDeduct  = "deduct"
	OpClose   = "close"
	OpRead    = "read"   // of a sale, a purchase or the outbox
	OpDelete  = "delete" // of outbox entries
)

// Memory keeps sales and outbox in memory: a Counter that needs no lock, a Desk
// and an Outbox. The zero value is ready; it is safe for concurrent use.
type Memory struct {
	// Now is the clock; nil is time.Now. Set it before the first use.
	Now func() time.Time

	// Hook, if set, is called before each operation. It says whether the
	// operation is applied, and which error is returned; an error together
	// with apply is an answer that was lost on its way. Set it while nothing
	// runs.
	Hook func(op string) (apply bool, err error)

	mu      sync.Mutex
	sales   map[string]*memorySale
	shards  [rediskey.Shards][]memoryEntry
	lastID  int
	arrived chan struct{} // closed and replaced when an entry arrives
}

type memorySale struct {
	stock.Snapshot
	closed    bool
	purchases map[string]stock.Purchase
	answers   map[string]stock.Answer
	buyers    map[string]string
}

type memoryEntry struct {
	stock.OutboxEntry
	id int
	at time.Time
}

var (
	_ stock.Counter = (*Memory)(nil)
	_ stock.Desk    = (*Memory)(nil)
	_ stock.Outbox  = (*Memory)(nil)
)

// Preload implements stock.Counter.
func (m *Memory) Preload(_ context.Context, sale stock.Sale) error {
	return m.do(OpPreload, func() error {
		if existing := m.sales[sale.ID]; existing != nil {
			if !existing.SameTerms(sale) {
				return stock.ErrSaleExists
			}
			return nil
		}
		if m.sales == nil {
			m.sales = make(map[string]*memorySale)
		}
		m.sales[sale.ID] = &memorySale{
			Snapshot:  stock.Snapshot{Sale: sale, Remaining: sale.Stock},
			purchases: make(map[string]stock.Purchase),
			answers:   make(map[string]stock.Answer),
			buyers:    make(map[string]string),
		}
		return nil
	})
}

// Snapshot implements stock.Counter.
func (m *Memory) Snapshot(_ context.Context, saleID string) (snapshot stock.Snapshot, err error) {
	err = m.do(OpRead, func() error {
		sale := m.sales[saleID]
		if sale == nil {
			return stock.ErrSaleNotFound
		}
		snapshot = sale.Snapshot
		snapshot.State = sale.StateAt(m.now(), sale.closed)
		return nil
	})
	return snapshot, err
}

// Deduct implements stock.Counter.
func (m *Memory) Deduct(_ context.Context, fence uint64, batch []stock.Deduction) (results []stock.Result, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	err = m.do(OpDeduct, func() error {
		sale := m.sales[batch[0].SaleID]
		if sale == nil {
			return stock.ErrSaleNotFound
		}
		if fence > 0 && fence < sale.LastFence && !sale.knows(batch) {
			return stock.ErrStale
		}
		sale.LastFence = max(sale.LastFence, fence)
		results = stock.Standing{
			State: sale.StateAt(m.now(), sale.closed), Limit: sale.PerUserLimit,
			Remaining: sale.Remaining, Known: sale.answers, Buyers: sale.buyers,
		}.Decide(fence, batch)
		m.store(sale, fence, batch, results)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// knows reports whether all of a batch was accepted before.
func (s *memorySale) knows(batch []stock.Deduction) bool {
	for _, d := range batch {
		if _, known := s.answers[d.PurchaseID]; !known {
			return false
		}
	}
	return true
}

// store keeps what results accept, and appends it to the outbox as one entry.
func (m *Memory) store(sale *memorySale, fence uint64, batch []stock.Deduction, results []stock.Result) {
	var events [][]byte
	for i, result := range results {
		if result.Err != nil || result.Replayed {
			continue
		}
		d := batch[i]
		sale.Remaining = result.Remaining
		sale.Accepted += d.Quantity
		sale.buyers[d.UserID] = d.PurchaseID
		sale.answers[d.PurchaseID] = stock.Answer{Quantity: d.Quantity, Remaining: result.Remaining, Fence: fence}
		sale.purchases[d.PurchaseID] = stock.Purchase{
			PurchaseID: d.PurchaseID, SaleID: d.SaleID, UserID: d.UserID, Quantity: d.Quantity,
			PriceCents: d.PriceCents, Fence: fence, Status: stock.StatusPending, CreatedAt: d.At,
		}
		event, err := json.Marshal(d.Event(fence))
		if err != nil {
			panic(err) // an Event has nothing in it that JSON can't hold
		}
		events = append(events, event)
	}
	if len(events) > 0 {
		m.append(rediskey.Shard(sale.ID), events)
	}
}

// Close implements stock.Desk.
func (m *Memory) Close(_ context.Context, saleID string) error {
	return m.do(OpClose, func() error {
		sale := m.sales[saleID]
		if sale == nil {
			return stock.ErrSaleNotFound
		}
		sale.closed = true
		return nil
	})
}

// Purchase implements stock.Desk.
func (m *Memory) Purchase(_ context.Context, purchaseID string) (purchase stock.Purchase, err error) {
	err = m.do(OpRead, func() error {
		saleID, _ := stock.SaleOf(purchaseID)
		sale, found := m.sales[saleID], false
		if sale != nil {
			purchase, found = sale.purchases[purchaseID]
		}
		if !found {
			return stock.ErrPurchaseNotFound
		}
		return nil
	})
	return purchase, err
}

// PurchaseOf finds a user's live purchase in a sale.
func (m *Memory) PurchaseOf(_ context.Context, saleID, userID string) (purchase stock.Purchase, err error) {
	err = m.do(OpRead, func() error {
		sale := m.sales[saleID]
		if sale == nil || sale.buyers[userID] == "" {
			return stock.ErrPurchaseNotFound
		}
		purchase = sale.purchases[sale.buyers[userID]]
		return nil
	})
	return purchase, err
}

// EachPurchase implements stock.Desk.
func (m *Memory) EachPurchase(_ context.Context, saleID string, fn func(stock.Purchase) error) error {
	var purchases []stock.Purchase
	err := m.do(OpRead, func() error {
		if sale := m.sales[saleID]; sale != nil {
			for _, purchase := range sale.purchases {
				purchases = append(purchases, purchase)
			}
		}
		return nil
	})
	for _, purchase := range purchases {
		if err == nil {
			err = fn(purchase)
		}
	}
	return err
}

// Append puts an entry into a shard, for tests of what reads it. Its ID is
// returned.
func (m *Memory) Append(shard int, events ...[]byte) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.append(shard, events)
}

func (m *Memory) append(shard int, events [][]byte) string {
	m.lastID++
	id := strconv.Itoa(m.lastID) + "-0"
	m.shards[shard] = append(m.shards[shard], memoryEntry{
		OutboxEntry: stock.OutboxEntry{ID: id, Events: events}, id: m.lastID, at: m.now(),
	})
	if m.arrived != nil {
		close(m.arrived)
		m.arrived = nil
	}
	return id
}

// Read implements stock.Outbox.
func (m *Memory) Read(ctx context.Context, shard int, after string, count int, block time.Duration) ([]stock.OutboxEntry, error) {
	timer := time.NewTimer(block)
	defer timer.Stop()
	for {
		var entries []stock.OutboxEntry
		var arrived chan struct{}
		err := m.do(OpRead, func() error {
			last, err := entryNumber(after)
			for _, entry := range m.shards[shard] {
				if entry.id > last && len(entries) < count {
					entries = append(entries, entry.OutboxEntry)
				}
			}
			if m.arrived == nil {
				m.arrived = make(chan struct{})
			}
			arrived = m.arrived
			return err
		})
		if err != nil || len(entries) > 0 || block <= 0 {
			return entries, err
		}
		select {
		case <-arrived:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", stock.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// Delete implements stock.Outbox.
func (m *Memory) Delete(_ context.Context, shard int, ids []string) error {
	return m.do(OpDelete, func() error {
		m.shards[shard] = slices.DeleteFunc(m.shards[shard], func(entry memoryEntry) bool {
			return slices.Contains(ids, entry.ID)
		})
		return nil
	})
}

// Depth implements stock.Outbox.
func (m *Memory) Depth(_ context.Context, shard int) (entries int64, oldest time.Time, err error) {
	err = m.do(OpRead, func() error {
		if entries = int64(len(m.shards[shard])); entries > 0 {
			oldest = m.shards[shard][0].at
		}
		return nil
	})
	return entries, oldest, err
}

// do runs an operation under the lock, as the hook wants it.
func (m *Memory) do(op string, operation func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	apply, hookErr := true, error(nil)
	if m.Hook != nil {
		apply, hookErr = m.Hook(op)
	}
	if apply {
		if err := operation(); err != nil {
			return err
		}
	}
	return hookErr
}

func (m *Memory) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

func entryNumber(id string) (int, error) {
	if id == "" || id == "0" {
		return 0, nil
	}
	var number, sequence int
	if _, err := fmt.Sscanf(id, "%d-%d", &number, &sequence); err != nil {
		return 0, fmt.Errorf("%w: outbox entry %q", stock.ErrUnavailable, id)
	}
	return number, nil
}
