package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPauseDoublesUpToItsBound(t *testing.T) {
	const least, most = 100 * time.Millisecond, time.Second
	for failures, whole := range map[int]time.Duration{
		0: least, 1: least, 2: 2 * least, 4: 8 * least, 5: most, 1000: most,
	} {
		for range 100 {
			if d := Pause(failures, least, most); d < whole/2 || d > whole {
				t.Errorf("after %d failures: %v, want %v to %v", failures, d, whole/2, whole)
			}
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		passed := Wait(t.Context(), time.Minute)
		if waited := time.Since(start); !passed || waited != time.Minute {
			t.Errorf("waited %v, want a minute", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		passed = Wait(ctx, time.Hour)
		if waited := time.Since(start); passed || waited != time.Minute+time.Second {
			t.Errorf("waited %v past the end of the context", waited-time.Minute-time.Second)
		}
	})
}
