package locktest

import "testing"

func TestExclusiveFindsWhatNoLockCanHaveDone(t *testing.T) {
	cycle := func(asked, granted, releasing, released int64, fence uint64) Cycle {
		return Cycle{Asked: asked, Granted: granted, Releasing: releasing, Released: released, Fence: fence}
	}
	lost := func(c Cycle) Cycle { c.Lost = true; return c }
	read := func(c Cycle) Cycle { c.Shared, c.Fence = true, 0; return c }
	unsure := func(c Cycle) Cycle { c.Unsure = true; return c }
	for name, test := range map[string]struct {
		history []Cycle
		want    bool
	}{
		"one after the other":                 {[]Cycle{cycle(0, 1, 2, 3, 1), cycle(4, 5, 6, 7, 2)}, true},
		"asked while it was held":             {[]Cycle{cycle(0, 1, 20, 30, 1), cycle(2, 25, 40, 50, 2)}, true},
		"granted while it was held":           {[]Cycle{cycle(0, 1, 20, 30, 1), cycle(2, 15, 40, 50, 2)}, false},
		"one within the other":                {[]Cycle{cycle(0, 1, 90, 99, 1), cycle(10, 20, 30, 40, 2)}, false},
		"the fence goes back":                 {[]Cycle{cycle(0, 1, 2, 3, 2), cycle(4, 5, 6, 7, 1)}, false},
		"the fence is repeated":               {[]Cycle{cycle(0, 1, 2, 3, 2), cycle(4, 5, 6, 7, 2)}, false},
		"granted after a loss":                {[]Cycle{lost(cycle(0, 1, 90, 99, 1)), cycle(10, 20, 30, 40, 2)}, true},
		"granted twice after one loss":        {[]Cycle{lost(cycle(0, 1, 90, 99, 1)), cycle(10, 20, 50, 60, 2), cycle(11, 30, 40, 45, 3)}, false},
		"a release that nobody saw":           {[]Cycle{unsure(cycle(0, 1, 10, 20, 1)), cycle(30, 40, 50, 60, 2)}, true},
		"granted before a release nobody saw": {[]Cycle{unsure(cycle(0, 1, 50, 60, 1)), cycle(10, 20, 30, 40, 2)}, false},
		"two read":                            {[]Cycle{read(cycle(0, 1, 20, 30, 0)), read(cycle(2, 10, 12, 40, 0))}, true},
		"one writes while one reads":          {[]Cycle{read(cycle(0, 1, 20, 30, 0)), cycle(2, 10, 40, 50, 1)}, false},
		"one reads while one writes":          {[]Cycle{cycle(0, 1, 20, 30, 1), read(cycle(2, 10, 40, 50, 0))}, false},
		"one writes between two that read":    {[]Cycle{read(cycle(0, 1, 5, 6, 0)), cycle(2, 7, 8, 9, 1), read(cycle(3, 10, 11, 12, 0))}, true},
		"one writes before the second reader": {[]Cycle{read(cycle(0, 1, 5, 6, 0)), read(cycle(0, 1, 20, 30, 0)), cycle(2, 7, 8, 9, 1)}, false},
		"listed in another order than it was": {[]Cycle{cycle(4, 5, 6, 7, 2), cycle(0, 1, 2, 3, 1)}, true},
	} {
		if got, undecided := Exclusive(test.history, true); got != test.want || undecided {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if ok, _ := Exclusive([]Cycle{cycle(0, 1, 2, 3, 0), cycle(4, 5, 6, 7, 0)}, false); !ok {
		t.Error("fences are asked for where there are none")
	}
}
