package redisstock

import (
	"encoding/json"
	"reflect"
	"testing"
)

func FuzzSplitObjects(f *testing.F) {
	for _, text := range []string{`[{"a":1},{"b":"}{,\\"]"}]`, `[{"a":{}}]`, `[1]`, `[]`, `{}`, `[{"a":"\\\\"},{}]`, `[{} ,{}]`, ``} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := splitObjects([]byte(text))
		if got == nil {
			return
		}
		var elements []json.RawMessage
		if err := json.Unmarshal([]byte(text), &elements); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := make([][]byte, len(elements))
		for i, e := range elements {
			want[i] = e
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}
