//go:build unix

package redisstock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/redislock"
	"flashsale/internal/stock"
)

// What a holder process is told by its environment, and says on its output.
const (
	holderEnv   = "FLASHSALE_TEST_HOLDER" // address, prefix and lease's notice of loss
	holderInGap = "holder: in the gap"
	holderEnds  = "holder: "
)

const pausedTTL = 300 * time.Millisecond

// TestPausedHolder stops a whole process, as a long pause of its machine does,
// between its read and its write. Its lease ends, since its watchdog stands
// still too; another one buys; then it goes on.
func TestPausedHolder(t *testing.T) {
	for _, test := range []struct {
		name    string
		fencing bool
		notices bool // whether the holder looks at its lease before it writes
		want    string
		left    int64
		sold    int64
	}{
		{"fencing refuses its write", true, false, "stale", 7, 3},
		// It may notice the loss when it wakes up, before the write, or while the
		// write is under way, but what is asked of the clock a moment before a
		// write says nothing about the write.
		{"it notices, or its write is refused", true, true, "not accepted", 7, 3},
		{"without fencing an update is lost", false, false, "accepted", 9, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := onReal(t)
			sale := testSale(t, f)
			if !test.fencing {
				sale.ID, sale.Fencing = "unfenced", false
				if err := f.Preload(t.Context(), sale); err != nil {
					t.Fatal(err)
				}
			}
			holder := startHolder(t, f, sale.ID, test.notices)
			holder.expect(t, holderInGap)
			holder.signal(t, syscall.SIGSTOP)

			// The buyer waits for the lock, so for the end of the lease.
			receipt, err := pausedShop(t, f, nil).Purchase(t.Context(), stock.Request{SaleID: sale.ID, UserID: "next", Quantity: 3})
			if err != nil || receipt.Remaining != 7 {
				t.Errorf("the next one: receipt is %+v, %v", receipt, err)
			}
			holder.goOn(t)
			holder.signal(t, syscall.SIGCONT)
			holder.expect(t, holderEnds+test.want)
			wantLeft(t, f, sale, test.left, test.sold)
		})
	}
}

// pausedShop sells under the watchdog lock; hide removes what a lease says
// about its loss.
func pausedShop(t *testing.T, f fixture, hide func(lock.Locker) lock.Locker) *stock.Direct {
	t.Helper()
	watchdog, err := redislock.NewWatchdog(f.client, redislock.Options{
		TTL: pausedTTL, Wait: 10 * time.Second,
		Keys: func(key string) (string, string) { return f.keys.Lock(key), f.keys.Fence(key) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watchdog.Close() })
	var locker lock.Locker = watchdog
	if hide != nil {
		locker = hide(locker)
	}
	return stock.NewDirect(stock.DirectOptions{
		Sales: f.Store, Variants: map[string]stock.Variant{"watchdog": {Locker: locker, Counter: f.Guarded()}},
	})
}

// TestHolderProcess is the process that is stopped. Alone it is no test.
func TestHolderProcess(t *testing.T) {
	told := strings.Fields(os.Getenv(holderEnv))
	if len(told) == 0 {
		return
	}
	addr, prefix, saleID, notices := told[0], told[1], told[2], told[3] == "true"
	f := newFixture(t, addr, prefix)
	inTheGap(f, func() {
		fmt.Println(holderInGap)
		io.ReadFull(os.Stdin, make([]byte, 1))
	})
	hide := func(locker lock.Locker) lock.Locker { return heedless{locker} }
	if notices { // a Locker alone: it is granted first, and reads then, or there is no gap
		hide = func(locker lock.Locker) lock.Locker { return struct{ lock.Locker }{locker} }
	}
	_, err := pausedShop(t, f, hide).Purchase(t.Context(), stock.Request{SaleID: saleID, UserID: "holder", Quantity: 1})
	switch {
	case err == nil:
		fmt.Println(holderEnds + "accepted")
	case notices && (errors.Is(err, stock.ErrStale) || errors.Is(err, lock.ErrLost)):
		fmt.Println(holderEnds + "not accepted")
	case errors.Is(err, stock.ErrStale):
		fmt.Println(holderEnds + "stale")
	default:
		fmt.Println(holderEnds + err.Error())
	}
}

// heedless is a lock whose holders are not told of its loss.
type heedless struct{ lock.Locker }

func (h heedless) Acquire(ctx context.Context, key string) (lock.Lease, error) {
	lease, err := h.Locker.Acquire(ctx, key)
	return heedlessLease{lease}, err
}

type heedlessLease struct{ lock.Lease }

func (heedlessLease) Lost() <-chan struct{} { return nil }

// holder is such a process, seen from outside.
type holder struct {
	process *os.Process
	stdin   io.Writer
	lines   chan string
}

func startHolder(t *testing.T, f fixture, saleID string, notices bool) holder {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestHolderProcess$")
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %t", holderEnv, f.client.Options().Addr, f.keys.Prefix, saleID, notices))
	command.Stderr = os.Stderr
	stdin, err1 := command.StdinPipe()
	stdout, err2 := command.StdoutPipe()
	if err := errors.Join(err1, err2, command.Start()); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	return holder{command.Process, stdin, lines}
}

func (h holder) expect(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case line, ok := <-h.lines:
			if !ok {
				t.Fatalf("holder ended without saying %q", want)
			}
			if line == want {
				return
			}
			if strings.HasPrefix(line, holderEnds) {
				t.Fatalf("holder says %q, want %q", line, want)
			}
		case <-deadline:
			t.Fatalf("holder does not say %q", want)
		}
	}
}

func (h holder) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := h.process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

func (h holder) goOn(t *testing.T) {
	t.Helper()
	if _, err := h.stdin.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
}
