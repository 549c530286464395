package lock_test

import (
	"testing"

	"flashsale/internal/lock"
	"flashsale/internal/lock/locktest"
)

func TestNoneConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(testing.TB, locktest.Setting) lock.Locker { return lock.None{} }}
	})
}

func TestLocalConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true, Fence: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
			return lock.NewLocal(lock.LocalOptions{Wait: s.Wait})
		}}
	})
}

func TestCohortConforms(t *testing.T) {
	locktest.Run(t, locktest.Features{Excludes: true, Fence: true, SharesFence: true}, func(*testing.T) locktest.Store {
		return locktest.Store{New: func(_ testing.TB, s locktest.Setting) lock.Locker {
			return lock.NewCohort(lock.NewLocal(lock.LocalOptions{Wait: s.Wait}), lock.CohortOptions{Wait: s.Wait})
		}}
	})
}
