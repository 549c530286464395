// Package lock defines what every lock of this module promises, and nothing
// about how one keeps the promise: the variants that need a server live in
// packages of their own below this one.
//
// A lock here is always a lease. It is granted for a while, it can end before
// its holder is done, and the holder is told when it does. A lock whose holder
// cannot lose it does not exist once two machines are involved.
//
// Use [Do]: it acquires, runs, tells the work when its lease is lost, and
// releases whatever happens.
//
// # The variants
//
// In the order in which each one removes a fault of the one before.
//
//	none          excludes nobody; the baseline that oversells
//	local         a queue in this process
//	setnx-bare    SETNX and DEL, broken
//	setnx-expire  SETNX, then the expiry, broken
//	setnx-getdel  SET NX PX, released by GET, compare, DEL, broken
//	setnx         SET NX PX, a token, a scripted release, polling with jitter
//	function      setnx, its scripts a library of functions in Redis
//	watchdog      setnx, extended while held, woken by the release, local queue first
//	fair          watchdog, with one queue for all processes in Redis
//	redlock       watchdog's promise by a majority of independent servers, without a fence
//	etcd          an entry in etcd bound to a lease, extended while held, a line of waiters
//	zookeeper     an ephemeral, sequential node in ZooKeeper, a line of waiters
//	mysql-row     a row in MySQL, SELECT ... FOR UPDATE on a connection of its own
//
// What that protects against, and what it does not:
//
//	variant       protects against                  still fails when
//	none          nothing                           two buyers come at once
//	local         two goroutines of one process     there is a second process
//	setnx-bare    two processes                     the holder crashes: stuck for ever
//	setnx-expire  a crash while at work             the holder crashes between the two commands: stuck
//	setnx-getdel  any crash of the holder           the lease ends between GET and DEL: two holders
//	setnx         two processes; a crashed holder;  the work outlives the TTL; Redis fails over
//	              release by another; lost replies
//	function      all that; forgotten scripts       as setnx
//	watchdog      all of setnx's; work longer       the process is paused past the TTL; Redis
//	              than the TTL; a crowd of waiters  fails over: there the fence has to help
//	fair          all that; being overtaken;        as watchdog; the first waiter dies: the others
//	              waiters that died in the queue    wait until its place has ended
//	redlock       that, and the end of any minority the process is paused past the TTL; clocks
//	              of the servers                    jump, or data are lost, on enough servers
//	etcd          that, and the end of any minority the process is paused past the TTL; etcd
//	              of its members                    is put back to an older backup
//	zookeeper     as etcd                           the process is paused past the session's timeout
//	                                                all leases of a process end with its session
//	mysql-row     several processes; a crashed      the process is paused past the TTL; MySQL fails over
//	              holder; work longer than the TTL  (all leases end); a connection for each key in use
//	watchdog-cohort     as watchdog: one lease, handed on to others of the process
//	watchdog-combining  as watchdog: one lease, one batch for all who wait in the process
//
// And the counters of a sale that take no lock, or one for a part:
//
//	variant            protects against              still fails when
//	atomic             overselling, lost updates,    Redis loses what it acknowledged: the ledger settles
//	                   repetitions, all by itself    each purchase once more
//	striped            a crowd at one lock: eight    as watchdog, for an eighth of the units each; a look
//	                   locks, eight parts of stock   into the others' parts costs two locks
//	mysql-optimistic   lost updates: the units left  many come at once: most of them try again, and give
//	                   are their own version         up in the end
//	mysql-conditional  overselling: UPDATE ... WHERE  a row takes what MySQL can write, and no more
//	                   remaining >= n
//
// What it costs and offers (round trips are those of an uncontended cycle):
//
//	variant       round trips  needs   fence  notices loss  waits by         reentrant  fair
//	none          0            -       no     no            -                -          -
//	local         0            -       yes*   cannot lose   queue            no         yes
//	setnx-bare    2            Redis   no     no            poll             no         no
//	setnx-expire  3            Redis   no     no            poll             no         no
//	setnx-getdel  3            Redis   no     no            poll             no         no
//	setnx         2            Redis   yes    yes           poll             no         no
//	function      2            Redis 7 yes    yes           poll             no         no
//	watchdog      2            Redis   yes    yes           queue, pub/sub   no         in a process
//	fair          2            Redis   yes    yes           pub/sub          no         everywhere
//	redlock       2 x nodes**  >= 3 R. no***  yes           queue, poll      no         in a process
//	etcd          3            etcd    yes    yes           queue, watch     no         among processes
//	zookeeper     4            ZooKeeper yes  yes           queue, watch     no         among processes
//	mysql-row     5            MySQL   yes    yes           queue, row lock  no         in a process
//	watchdog-cohort    0 to 2  Redis   yes    yes           queue, pub/sub   no         in a process
//	watchdog-combining 2 a batch Redis yes    yes           queue, pub/sub   no         in a process
//	atomic        1 a batch    Redis   none needed          batch            -          in a process
//	striped       2            Redis   yes    yes           queue, pub/sub   no         in a process
//	mysql-optimistic >= 8 a try MySQL   none needed          trying again     -          no
//	mysql-conditional >= 9     MySQL   none needed          row lock         -          MySQL's
//
// * grows within one process only, so that a sale's has none: see LocalOptions.NoFence.
//
// ** in parallel: the caller waits for the quickest majority, twice.
//
// *** what the nodes of one majority have counted, the next one may not know: the
// largest of their numbers can be smaller than the last.
//
// A release without anybody to wake (setnx, function) is one plain command where
// the server has DELEX or DELIFEQ. With redislock.Options.Replicas each grant
// takes one round trip more. A holder whose last write goes to the same Redis
// spares one with watchdog, and one whose first read does another: see
// ReleaseAfter and AcquireThen.
//
// The broken ones are here to be watched failing, and for nothing else: their
// faults are what most home-made locks have.
//
// No variant is reentrant: who holds a lock and acquires it again waits for
// itself until its wait is over. Reentrant makes any of them so.
//
// Locks made of these, with their fences, losses and round trips:
//
//	lock          protects against                  still fails when
//	Multi         a deadlock of callers that need   somebody takes the same keys one by one,
//	              the same keys in other orders     in another order
//	Reentrant     an owner that waits for itself    the owner works in two processes
//	Adaptive      a guessed TTL                     a run is slower than any observed one, by more
//	                                                than the safety factor
//	Cohort        a round trip to the store for     a write that one holder left under way
//	              each of a process' waiters        takes effect under the next: see Retire
//	Fallback      callers who pile up behind a      it has degraded and there is a second
//	              store that is down                process: each has its own holder
//
// A Cohort hands a lease on up to 64 times, for up to 20 ms, which over watchdog
// is the sale variant watchdog-cohort. Holders that share a lease have the same
// fence, which a store accepts again; only the next grant's is larger.
//
// Watchdog does so too, up to 32 times and for up to 5 ms while its lease is not
// to be extended, and for whom no step goes along with the grant. It knows how
// fences are made, so that each holder has one of its own; and as with a Cohort,
// that Redis lost the lock in between shows at the end: until then a release says
// nothing of it.
//
// A fallback.Fallback costs no round trip more, and none at all while its breaker
// is open: it then rejects, or degrades to a lock of the process whose leases have
// the fence 0. Only a guard in the database keeps two degraded processes apart.
//
// And a pair of locks in Redis, redislock.ReadWrite, that costs what watchdog does:
// its readers share, are extended each by itself and have no fence; its writers
// exclude everybody, have a fence, and are not kept out by a stream of readers.
//
// # Fences
//
// A lease can end while its holder is paused and cannot be told. So every grant
// that can carries a fence, a number that only grows; the store that the lock
// guards remembers the largest one it has seen and refuses a smaller one. The
// lock keeps holders apart most of the time, the fence makes it certain.
package lock
