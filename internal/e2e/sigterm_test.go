//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	inProgress = 50
	endBound   = 15 * time.Second // below FLASHSALE_SHUTDOWN_TIMEOUT: nothing had to be cut off
)

// TestSIGTERMUnderLoad ends the API that relays all shards while requests are
// in progress in it, and others come in.
func TestSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, first := newVisitor(t), in.api(t)
	leaders := in.leaders(t)
	second := in.api(t)
	in.syncer(t)
	v.want("201", v.createSale(first.url, "load", "atomic", loadUnits, terms{}))
	v.want("201", v.createSale(first.url, "slow", "atomic", 2*inProgress, terms{work: 2 * time.Second}))

	l := buying(t, v, []string{"load"}, first.url, second.url)
	l.more(100)
	slow := v.inProgress(first.url, "slow", inProgress)
	first.signal(syscall.SIGTERM)
	first.ended(endBound)
	for a := range slow {
		v.want("201", a)
	}
	for shard, token := range in.tokens(t) {
		if token == leaders[shard] {
			t.Errorf("shard %d is still locked by the process that has ended", shard)
		}
	}
	l.more(50)
	l.end()
	eventually(t, 4*time.Second, "the other API relays, before a lease could have ended", func() bool { return in.outbox(t) == 0 })
	// A request that comes at the moment at which an idle connection is closed
	// gets no answer, and may not have been read either: HTTP is like that.
	l.settle(in, second.url, "not connected", "cut off")
	if audit := v.exact(second.url, "slow"); audit.Accepted != inProgress {
		t.Errorf("audit %+v", audit)
	}
}

// inProgress sends so many purchases, a connection each, and returns once the
// API has accepted all of them.
func (v *visitor) inProgress(url, sale string, n int) <-chan answer {
	v.t.Helper()
	answers := make(chan answer, n)
	var written, answered sync.WaitGroup
	for i := range n {
		written.Add(1)
		done := sync.OnceFunc(written.Done)
		answered.Go(func() {
			defer done()
			answers <- v.buyAlone(url, sale, fmt.Sprintf("slow-%d", i), done)
		})
	}
	written.Wait()
	v.accepted(url)
	if len(answers) > 0 {
		v.t.Error("some were answered too soon to be in progress")
	}
	go func() {
		answered.Wait()
		close(answers)
	}()
	return answers
}

// buyAlone buys on a connection of its own and says when the request is sent.
func (v *visitor) buyAlone(url, sale, user string, sent func()) answer {
	transport := &http.Transport{DisableKeepAlives: true}
	alone := &visitor{v.t, &http.Client{Transport: &traced{transport, sent}, Timeout: time.Minute}}
	return alone.buy(url, sale, user, user)
}

type traced struct {
	http.RoundTripper
	sent func()
}

func (r *traced) RoundTrip(request *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { r.sent() }}
	return r.RoundTripper.RoundTrip(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
}

// TestAcceptedConnectionIsServed sends requests on connections that were there
// when the API was told to end, after it has begun to.
func TestAcceptedConnectionIsServed(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, api := newVisitor(t), in.api(t)
	other := in.api(t)
	in.syncer(t)
	v.want("201", v.createSale(api.url, "sale", "watchdog", inProgress, terms{}))
	conns := make([]net.Conn, 20)
	for i := range conns {
		conn, err := net.Dial("tcp", api.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	v.accepted(api.url)
	api.signal(syscall.SIGTERM)
	eventually(t, 10*time.Second, "nobody is let in any more", func() bool {
		conn, err := net.Dial("tcp", api.addr)
		if err != nil {
			return true
		}
		conn.Close()
		return false
	})
	var buyers sync.WaitGroup
	for i, conn := range conns {
		buyers.Go(func() {
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
			buyer := &visitor{t, &http.Client{Transport: transport, Timeout: time.Minute}}
			if a := buyer.buy(api.url, "sale", fmt.Sprintf("u%d", i), "k"); !a.is("201") {
				t.Errorf("got %v", a)
			}
		})
	}
	buyers.Wait()
	api.ended(endBound)
	if audit := v.exact(other.url, "sale"); audit.Accepted != int64(len(conns)) {
		t.Errorf("audit %+v", audit)
	}
}

// accepted returns when all connections that were opened before are the API's:
// they are accepted in order, so a later one that was answered says so.
func (v *visitor) accepted(url string) {
	v.t.Helper()
	alone := &visitor{v.t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}}
	v.want("200", alone.send("GET", url+"/healthz", ""))
}

// ended wants the program to end by itself in time, with 0.
func (p *program) ended(within time.Duration) {
	p.t.Helper()
	select {
	case <-p.child.Done():
		if err := p.child.Err(); err != nil {
			p.t.Errorf("%s ended with %v", p.name, err)
		}
	case <-time.After(within):
		p.t.Errorf("%s has not ended within %v", p.name, within)
	}
}

// TestSIGTERMOfSyncer ends one in the middle of its work; another goes on.
func TestSIGTERMOfSyncer(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, api, first := newVisitor(t), in.api(t), in.syncer(t)
	v.want("201", v.createSale(api.url, "load", "atomic", loadUnits, terms{}))
	l := buying(t, v, []string{"load"}, api.url)
	eventually(t, 30*time.Second, "the ledger fills", func() bool { return len(in.rows(t, "load")) > 100 })
	if took := first.end(); took > endBound {
		t.Errorf("ended after %v", took)
	}
	before := len(in.rows(t, "load"))
	in.syncer(t)
	// A member that was killed would keep the partitions for 6 s.
	eventually(t, 5*time.Second, "the next syncer goes on at once", func() bool { return len(in.rows(t, "load")) > before })
	l.settle(in, api.url)
}
