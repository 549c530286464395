package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"flashsale/internal/stock"

	"github.com/gin-gonic/gin"
)

// Counter is what the interface needs of the counter: the Seller does the rest.
type Counter interface {
	Preload(ctx context.Context, sale stock.Sale) error
	Snapshot(ctx context.Context, saleID string) (stock.Snapshot, error)
}

// Options are the ports behind the interface. Seller, Counter, Desk, Ledger,
// Audit, Variants and AdminToken are needed.
type Options struct {
	Seller  stock.Seller
	Counter Counter
	Desk    stock.Desk
	Ledger  stock.Ledger

	// Audit compares counter and ledger of a sale, waiting up to wait for the
	// events in flight; deep compares purchase by purchase.
	Audit func(ctx context.Context, saleID string, wait time.Duration, deep bool) (stock.Audit, error)

	Variants   []string          // that a sale may be created with
	Lacking    map[string]string // other variants that are known, and what each of them needs: "needs etcd"
	AdminToken string            // Bearer token of the routes that change sales

	Checks   []Check     // behind /readyz
	Draining func() bool // nil: never

	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now
}

// Check asks whether a server can be reached.
type Check struct {
	Name     string
	Required bool // /readyz is 503 without it, else merely degraded
	Ping     func(context.Context) error
}

func (o Options) validate() error {
	var missing []string
	for name, absent := range map[string]bool{
		"Seller": o.Seller == nil, "Counter": o.Counter == nil, "Desk": o.Desk == nil, "Ledger": o.Ledger == nil,
		"Audit": o.Audit == nil, "Variants": len(o.Variants) == 0, "AdminToken": o.AdminToken == "",
	} {
		if absent {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return errors.New("httpapi: options lack " + join(missing))
}

type api struct {
	Options
	routes   []route
	outcomes []string // paths, as gin writes them, whose POST says X-Outcome
	document []byte   // OpenAPI
}

// New returns the handler of the whole interface. It panics when an option that
// is needed is missing: that is a fault of the program, not of its environment.
func New(o Options) http.Handler {
	if err := o.validate(); err != nil {
		panic(err)
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &api{Options: o}
	a.routes = a.routeTable()
	a.document = document(a.routes)
	return a.engine()
}

func (a *api) engine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	// The path as it was sent decides: an encoded slash is part of an ID (and
	// no ID has one), "..", "//" and a slash at the end lead nowhere.
	e.UseEscapedPath = true
	e.UnescapePathValues = true
	e.RedirectTrailingSlash = false
	e.HandleMethodNotAllowed = true
	e.ForwardedByClientIP = false

	e.Use(a.observe, a.recover)
	e.NoRoute(func(c *gin.Context) { a.fail(c, errNoRoute) })
	e.NoMethod(a.noMethod)
	for _, r := range a.routes {
		if r.outcome {
			a.outcomes = append(a.outcomes, ginPath(r.path))
		}
		e.Handle(r.method, ginPath(r.path), a.serve(r))
		if r.method == http.MethodGet {
			e.Handle(http.MethodHead, ginPath(r.path), a.serve(r))
		}
	}
	return e
}

// noMethod answers OPTIONS too: gin has already set the Allow header.
func (a *api) noMethod(c *gin.Context) {
	if c.Request.Method == http.MethodOptions {
		c.Status(http.StatusNoContent)
		return
	}
	a.fail(c, errMethod)
}

// serve checks a request against its route, so that handlers see good input
// alone, and turns their error into a problem.
func (a *api) serve(r route) gin.HandlerFunc {
	return func(c *gin.Context) {
		in, err := a.bind(c, r)
		if err == nil {
			err = r.handle(c, in)
		}
		if err != nil {
			a.fail(c, err)
		}
	}
}
