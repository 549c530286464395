package redislock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
	"flashsale/internal/servers"
	"flashsale/internal/servers/servertest"
)

// generous is a node timeout that a busy machine keeps.
const generous = time.Second

// nodes are the independent servers of a Redlock.
type nodes []servers.Server

func startNodes(t testing.TB, n int) nodes {
	t.Helper()
	all := make(nodes, n)
	for i := range all {
		all[i] = servertest.RedisServer(t)
	}
	return all
}

// fresh brings every node up, empty.
func (n nodes) fresh(t testing.TB) {
	t.Helper()
	for i := range n {
		start(t, n[i])
		if err := n.direct(t, i).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// direct is an undisturbed client of one node.
func (n nodes) direct(t testing.TB, i int) *redis.Client { return connect(t, n[i].Addr()) }

// connect makes clients of all nodes, as a process of its own would.
func (n nodes) connect(t testing.TB) []redis.UniversalClient {
	t.Helper()
	clients := make([]redis.UniversalClient, len(n))
	for i := range n {
		clients[i] = connect(t, n[i].Addr())
	}
	return clients
}

func (n nodes) redlock(t testing.TB, options RedlockOptions) *Redlock {
	t.Helper()
	return buildRedlock(t, n.connect(t), options)
}

func buildRedlock(t testing.TB, clients []redis.UniversalClient, options RedlockOptions) *Redlock {
	t.Helper()
	if options.NodeTimeout == 0 && (options.TTL == 0 || options.TTL >= 2*generous) {
		options.NodeTimeout = generous
	}
	r, err := NewRedlock(clients, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// tokens is what the nodes that run have stored as holder.
func (n nodes) tokens(t testing.TB) []string {
	t.Helper()
	all := make([]string, len(n))
	for i := range n {
		all[i] = n.direct(t, i).Get(t.Context(), lockKey).Val()
	}
	return all
}

// residue lists the keys of all nodes, once stragglers had time to be done.
func (n nodes) residue(t testing.TB) (left []string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		left = nil
		for i := range n {
			left = append(left, n.direct(t, i).Keys(t.Context(), "*").Val()...)
		}
		if len(left) == 0 {
			return nil
		}
	}
	return left
}

func (n nodes) nothingLeft(t testing.TB) {
	t.Helper()
	if left := n.residue(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func (n nodes) kill(which ...int) {
	for _, i := range which {
		n[i].Kill()
	}
}

func release(t testing.TB, lease lock.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

func TestRedlockConforms(t *testing.T) {
	five := startNodes(t, 5)
	locktest.Run(t, locktest.Features{Excludes: true, AcrossProcesses: true, Expires: true, Extends: true}, func(t *testing.T) locktest.Store {
		five.fresh(t)
		return locktest.Store{
			New: func(t testing.TB, s locktest.Setting) lock.Locker {
				return five.redlock(t, RedlockOptions{Options: Options{TTL: s.TTL, Wait: s.Wait, Drift: s.Drift}})
			},
			Steal: func(t testing.TB, key string) {
				for i := range five {
					five.direct(t, i).Del(t.Context(), "lock:{"+key+"}")
				}
			},
			Residue: func(t testing.TB, key string) []string { return five.residue(t) },
		}
	})
}

// TestRedlockFaults shares five servers, which each test finds running and empty.
func TestRedlockFaults(t *testing.T) {
	five := startNodes(t, 5)
	for name, test := range map[string]func(*testing.T, nodes){
		"one node down stops the lock":                                 func(t *testing.T, n nodes) { minorityDown(t, n, 3) },
		"two nodes down stop the lock":                                 func(t *testing.T, n nodes) { minorityDown(t, n, 1, 4) },
		"three nodes down and it is granted, or contended, or hangs":   majorityDown,
		"a majority of the reachable nodes is taken for a quorum":      quorumOfTheReachable,
		"a split vote leaves tokens, or blocks for ever":               splitVote,
		"two nodes die under the holder and it loses the lock":         minorityDiesUnderTheHolder,
		"three nodes die under the holder and it is not told in time":  majorityDiesUnderTheHolder,
		"a node that restarts empty stays outside":                     restartedNodeJoins,
		"three nodes restart empty and the holder goes on":             majorityForgets,
		"a lease that ended is brought to life again by its extension": extensionRevives,
		"a node whose clock jumped decides":                            jumpedClock,
		"a majority whose clocks jumped goes unnoticed":                jumpedClocks,
		"it tries more often than told":                                triesAreBounded,
		"a refusal leaves tokens on the nodes that agreed":             refusalReleasesEverywhere,
		"a release forgets nodes that were not needed":                 releaseReachesStragglers,
	} {
		t.Run(name, func(t *testing.T) {
			five.fresh(t)
			test(t, five)
		})
	}
}

func minorityDown(t *testing.T, five nodes, down ...int) {
	first, second := five.redlock(t, RedlockOptions{}), five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}})
	five.kill(down...)
	lease := acquire(t, first)
	_, err := second.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	release(t, lease)
	// One that waits: a question of the refused attempt may still be on its way
	// to a node, and hold it until it is taken back.
	release(t, acquire(t, first))
	for _, i := range down {
		start(t, five[i])
	}
	five.nothingLeft(t)
}

func majorityDown(t *testing.T, five nodes) {
	locker := five.redlock(t, RedlockOptions{})
	five.kill(0, 2, 4)
	started := time.Now()
	_, err := locker.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
	if took := time.Since(started); took > lock.DefaultWait {
		t.Errorf("answered after %v", took)
	}
	for _, i := range []int{0, 2, 4} {
		start(t, five[i])
	}
	five.nothingLeft(t)
	eventually(t, "the lock works again", func() bool {
		lease, err := locker.Acquire(t.Context(), "item")
		return err == nil && lease.Release(t.Context()) == nil
	})
}

func quorumOfTheReachable(t *testing.T, five nodes) {
	// Three are down. Both others agree, which is all of those that answer.
	five.kill(0, 1, 2)
	_, err := five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrUnavailable)
}

func splitVote(t *testing.T, five nodes) {
	for i, token := range []string{"a", "a", "b", "b"} { // two other callers, neither of whom has won
		five.direct(t, i).Set(t.Context(), lockKey, token, 300*time.Millisecond)
	}
	_, err := five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	release(t, acquire(t, five.redlock(t, RedlockOptions{Options: Options{Wait: time.Minute}})))
	five.nothingLeft(t)
}

func minorityDiesUnderTheHolder(t *testing.T, five nodes) {
	const ttl = 1200 * time.Millisecond
	lease := acquire(t, five.redlock(t, RedlockOptions{Options: Options{TTL: ttl}}))
	five.kill(1, 3)
	select {
	case <-lease.Lost():
		t.Error("lost")
	case <-time.After(ttl * 3 / 2):
	}
	_, err := five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	release(t, lease)
}

func majorityDiesUnderTheHolder(t *testing.T, five nodes) {
	const ttl = 1500 * time.Millisecond
	lease := acquire(t, five.redlock(t, RedlockOptions{Options: Options{TTL: ttl, Drift: ttl / 4}}))
	five.kill(0, 1, 2)
	<-lease.Lost()
	for _, i := range []int{3, 4} { // what is left still keeps everybody else out
		if left := five.direct(t, i).PTTL(t.Context(), lockKey).Val(); left <= 0 {
			t.Errorf("told when the lock had gone from node %d", i)
		}
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
}

// empty restarts a node as one that has lost its data.
func (n nodes) empty(t testing.TB, which ...int) {
	t.Helper()
	for _, i := range which {
		if err := n.direct(t, i).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		n[i].Kill()
		start(t, n[i])
	}
}

func restartedNodeJoins(t *testing.T, five nodes) {
	const ttl = 900 * time.Millisecond
	lease := acquire(t, five.redlock(t, RedlockOptions{Options: Options{TTL: ttl}}))
	token := lease.(*redlockLease).token
	holds := func(i int) func() bool {
		return func() bool { return five.direct(t, i).Get(t.Context(), lockKey).Val() == token }
	}
	for i := range five { // more than a minority altogether, but one at a time
		eventually(t, "the node has the token", holds(i))
		five.empty(t, i)
		eventually(t, "the node has the token again", holds(i))
		time.Sleep(ttl / 2) // an extension that counts it
	}
	if lease.(*redlockLease).IsLost() {
		t.Fatal("lost")
	}
	release(t, lease)
	five.nothingLeft(t)
}

func majorityForgets(t *testing.T, five nodes) {
	const ttl = 1500 * time.Millisecond
	lease := acquire(t, five.redlock(t, RedlockOptions{Options: Options{TTL: ttl}}))
	eventually(t, "all have the token", func() bool { return !strings.Contains(strings.Join(five.tokens(t), ","), ",,") })
	started := time.Now()
	for _, i := range []int{0, 1, 2} {
		five.direct(t, i).FlushAll(t.Context())
	}
	<-lease.Lost()
	if took := time.Since(started); took > ttl*9/10 {
		t.Errorf("told after %v, though the first extension could tell", took)
	}
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	five.nothingLeft(t)
}

func extensionRevives(t *testing.T, five nodes) {
	r := five.redlock(t, RedlockOptions{})
	b := r.newBallot("item")
	if v := b.poll(t.Context(), b.extend()); v.yes != 0 || !r.tooMany(v.no) {
		t.Errorf("the extension of a lease that isn't there: %+v", v)
	}
	_ = r.Close() // what it may have done in the background
	five.nothingLeft(t)

	for i := range 3 { // another has it, on a quorum
		five.direct(t, i).Set(t.Context(), lockKey, "another", time.Minute)
	}
	if v := b.poll(t.Context(), b.extend()); v.yes != 0 {
		t.Errorf("extended another's lease: %+v", v)
	}
	_ = r.Close()
	if got := five.tokens(t); strings.Join(got, ",") != "another,another,another,," {
		t.Errorf("the nodes have %q", got)
	}
}

// jumpedClock: the clock of a node is ahead, so that it lets the lock go early.
func jumpedClock(t *testing.T, five nodes) {
	lease := acquire(t, five.redlock(t, RedlockOptions{}))
	eventually(t, "all have the token", func() bool { return !strings.Contains(strings.Join(five.tokens(t), ",")+",", ",,") })
	for _, i := range []int{0, 4} { // two of them
		five.direct(t, i).PExpire(t.Context(), lockKey, time.Millisecond)
	}
	eventually(t, "expired there", func() bool { tokens := five.tokens(t); return tokens[0] == "" && tokens[4] == "" })
	_, err := five.redlock(t, RedlockOptions{Options: Options{Wait: 100 * time.Millisecond}}).Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	release(t, lease)
	five.nothingLeft(t)
}

// jumpedClocks: with three of them there are two holders. Nothing but the next
// extension notices that.
func jumpedClocks(t *testing.T, five nodes) {
	lease := acquire(t, five.redlock(t, RedlockOptions{Options: Options{TTL: 3 * time.Second}}))
	eventually(t, "all have the token", func() bool { return !strings.Contains(strings.Join(five.tokens(t), ",")+",", ",,") })
	for i := range 3 {
		five.direct(t, i).PExpire(t.Context(), lockKey, time.Millisecond)
	}
	second := acquire(t, five.redlock(t, RedlockOptions{}))
	if lease.(*redlockLease).IsLost() {
		t.Error("the lesson has gone: the first holder knew at once")
	}
	<-lease.Lost()
	locktest.Is(t, lease.Release(t.Context()), lock.ErrLost)
	release(t, second)
	five.nothingLeft(t)
}

func triesAreBounded(t *testing.T, five nodes) {
	lease := acquire(t, five.redlock(t, RedlockOptions{}))
	clients := five.connect(t)
	var asked atomic.Int32
	for _, client := range clients {
		client.AddHook(beforeRedlock(func(context.Context) error { asked.Add(1); return nil }))
	}
	impatient := buildRedlock(t, clients, RedlockOptions{Options: Options{Wait: time.Minute, Tries: 3, PollMin: time.Millisecond, PollMax: time.Millisecond}})
	_, err := impatient.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	_ = impatient.Close()
	if n := asked.Load(); n != 3*5 {
		t.Errorf("the nodes were asked %d times, want 3 times each", n)
	}
	release(t, lease)
}

func refusalReleasesEverywhere(t *testing.T, five nodes) {
	for i := range 3 {
		five.direct(t, i).Set(t.Context(), lockKey, "another", time.Minute)
	}
	locker := five.redlock(t, RedlockOptions{Options: Options{Wait: lock.TryOnce}})
	_, err := locker.Acquire(t.Context(), "item")
	locktest.Is(t, err, lock.ErrNotAcquired)
	_ = locker.Close()
	if got := strings.Join(five.tokens(t), ","); got != "another,another,another,," {
		t.Errorf("the nodes have %s", got)
	}
}

func releaseReachesStragglers(t *testing.T, five nodes) {
	clients := five.connect(t)
	var late sync.WaitGroup
	late.Add(1)
	clients[4].AddHook(slowHook{late: &late})
	locker := buildRedlock(t, clients, RedlockOptions{Options: Options{TTL: 5 * time.Minute, ReleaseTimeout: time.Minute}, NodeTimeout: time.Minute})
	begin := time.Now()
	lease := acquire(t, locker) // doesn't wait for the last node, whose grant is still under way
	released := make(chan error, 1)
	go func() { released <- lease.Release(t.Context()) }()
	if err := <-released; err != nil { // nor does the release
		t.Error(err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v: waited for all nodes", took)
	}
	late.Done()
	_ = locker.Close()
	five.nothingLeft(t)
}

// slowHook holds commands up until late is done.
type slowHook struct{ late *sync.WaitGroup }

func (h slowHook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h slowHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.late.Wait()
		return next(ctx, cmd)
	}
}
func (h slowHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestQuorumIsComputedWrong(t *testing.T) {
	for n, want := range map[int]int{3: 2, 4: 3, 5: 3, 6: 4, 7: 4} {
		r := &Redlock{nodes: make([]redis.UniversalClient, n)}
		if got := r.quorum(); got != want {
			t.Errorf("quorum of %d is %d, want %d", n, got, want)
		}
		if r.tooMany(n-want) || !r.tooMany(n-want+1) {
			t.Errorf("of %d nodes, %d may be missing, not more", n, n-want)
		}
	}
}

func TestRedlockCountsItsLeaseFromTheWrongInstant(t *testing.T) {
	const ttl, drift = 8 * time.Second, time.Second
	five := startNodes(t, 3)
	five.fresh(t)
	// The first attempt fails, the second one is slow: the lease counts from the
	// start of the second, and is the shorter by the drift.
	var (
		mu       sync.Mutex
		attempts int
		second   time.Time
	)
	clients := five.connect(t)
	for _, client := range clients {
		client.AddHook(beforeRedlock(func(ctx context.Context) error {
			mu.Lock()
			attempts++
			nth := attempts
			if nth == 4 {
				second = time.Now()
			}
			mu.Unlock()
			if nth <= 3 {
				return errLink
			}
			time.Sleep(300 * time.Millisecond)
			return nil
		}))
	}
	begin := time.Now()
	lease := acquire(t, buildRedlock(t, clients, RedlockOptions{Options: Options{TTL: ttl, Drift: drift, PollMin: 400 * time.Millisecond, PollMax: 400 * time.Millisecond}}))
	l := lease.(*redlockLease)
	l.stop()
	<-l.watched
	until := l.Until()
	if earliest := begin.Add(400*time.Millisecond + ttl - drift); until.Before(earliest) {
		t.Errorf("the lease ends %v too early: counted from an earlier attempt", earliest.Sub(until))
	}
	if latest := second.Add(ttl - drift); until.After(latest) {
		t.Errorf("the lease ends %v too late: counted from the answer, or the drift has the wrong sign", until.Sub(latest))
	}
	release(t, lease)
}

// beforeRedlock is a hook that runs before a node is asked for the lock, and may
// fail the command.
type beforeRedlock func(ctx context.Context) error

func (f beforeRedlock) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f beforeRedlock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && cmd.Args()[1] == redlockScript.Hash() {
			if err := f(ctx); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}
func (f beforeRedlock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestRedlockIsHandedOutWhenItsTimeIsOver(t *testing.T) {
	const ttl = 900 * time.Millisecond
	three := startNodes(t, 3)
	clients := three.connect(t)
	var once sync.Map // by node: its first answer takes a TTL
	for i, client := range clients {
		client.AddHook(beforeRedlock(func(context.Context) error {
			if _, again := once.LoadOrStore(i, true); !again {
				time.Sleep(ttl / 2)
			}
			return nil
		}))
	}
	locker := buildRedlock(t, clients, RedlockOptions{Options: Options{TTL: ttl, Drift: ttl / 4}, NodeTimeout: ttl / 2})
	lease := acquire(t, locker)
	if l := lease.(*redlockLease); l.IsLost() {
		t.Error("handed out when it was over already")
	}
	_ = lease.Release(t.Context())
}

func TestRedlockWithWrongOptions(t *testing.T) {
	client := func(addr string) redis.UniversalClient {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { c.Close() })
		return c
	}
	three := []redis.UniversalClient{client("a:1"), client("b:1"), client("c:1")}
	for _, test := range []struct {
		name    string
		nodes   []redis.UniversalClient
		options RedlockOptions
		says    string
	}{
		{"two nodes", three[:2], RedlockOptions{}, "at least 3"},
		{"one node twice", append(three[:2:2], client("a:1")), RedlockOptions{}, "a:1 twice"},
		{"no client", []redis.UniversalClient{three[0], nil, three[1]}, RedlockOptions{}, "node 1 is nil"},
		{"node timeout longer than the lease allows", three, RedlockOptions{Options: Options{TTL: time.Second}, NodeTimeout: time.Second}, "500ms"},
		{"node timeout negative", three, RedlockOptions{NodeTimeout: -1}, "1ms"},
		{"replicas of nodes", three, RedlockOptions{Options: Options{Replicas: 1}}, "no vote"},
		{"TTL wrong", three, RedlockOptions{Options: Options{TTL: 1}}, "TTL"},
	} {
		if _, err := NewRedlock(test.nodes, test.options); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q in it", test.name, err, test.says)
		}
	}
	r, err := NewRedlock(three, RedlockOptions{})
	if err != nil || r.options.NodeTimeout != 50*time.Millisecond {
		t.Errorf("default node timeout %v, %v", r.options.NodeTimeout, err)
	}
	if r, err := NewRedlock(three, RedlockOptions{Options: Options{TTL: minTTL}}); err != nil {
		t.Errorf("the shortest TTL: %v", fmt.Sprint(r, err))
	}
}
