package lock_test

import (
	"testing"
	"time"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestNoneConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(testing.TB, locktest.Setting) lock.Locker { return lock.None{} }}
	})
}

func TestAdaptiveConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true, Fence: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(t testing.TB, s locktest.Setting) lock.Locker {
			local := lock.NewLocal(lock.LocalOptions{Wait: s.Wait}) // the store that all lengths share
			adaptive, err := lock.NewAdaptive(lock.AdaptiveOptions{Build: func(time.Duration) (lock.Locker, error) { return local, nil }})
			if err != nil {
				t.Fatal(err)
			}
			return adaptive
		}}
	})
}

func TestLocalConforms(t *testing.T) {
	for name, noFence := range map[string]bool{"with fences": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			locktest.Run(t, locktest.Features{Excludes: true, Fence: !noFence}, func(*testing.T) locktest.Store {
				return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
					return lock.NewLocal(lock.LocalOptions{Wait: s.Wait, NoFence: noFence})
				}}
			})
		})
	}
}

func TestCohortConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true, Fence: true, SharesFence: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
			return lock.NewCohort(lock.NewLocal(lock.LocalOptions{Wait: s.Wait}), lock.CohortOptions{Wait: s.Wait})
		}}
	})
}
