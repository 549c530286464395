//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
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
	began := time.Now()
	first.signal(syscall.SIGTERM)
	for a := range slow {
		v.want("201", a)
	}
	<-first.child.Done()
	took := time.Since(began)
	if err := first.child.Err(); err != nil || took > endBound {
		t.Errorf("ended after %v with %v", took, err)
	}
	t.Logf("ended after %v", took)
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
// API has accepted all of them: connections are accepted in order, so a later
// one that was answered says so.
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
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	response, err := alone.Get(url + "/healthz")
	if err != nil {
		v.t.Fatal(err)
	}
	response.Body.Close()
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

// TestNoNewConnectionIsCutOff ends an API whose clients open a connection for
// each request: one that it has taken is answered, whenever it came.
func TestNoNewConnectionIsCutOff(t *testing.T) {
	t.Parallel()
	in := install(t, own{})
	v, api := newVisitor(t), in.api(t)
	var served, refused atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 5000 {
				a := v.visitAlone(api.url)
				switch {
				case a.is("200"):
					served.Add(1)
				case a.is("not connected"), errors.Is(a.err, syscall.ECONNRESET), errors.Is(a.err, syscall.EPIPE):
					// Never accepted: what is in the kernel's queue when the
					// listener is closed is reset.
					refused.Add(1)
					return
				default:
					t.Errorf("got %v", a)
					return
				}
			}
		})
	}
	eventually(t, 30*time.Second, "clients come and go", func() bool { return served.Load() > 200 })
	api.end()
	clients.Wait()
	if refused.Load() != 8 {
		t.Errorf("%d clients saw the end", refused.Load())
	}
}

func (v *visitor) visitAlone(url string) answer {
	alone := &visitor{v.t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}}
	return alone.send("GET", url+"/healthz", "")
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
