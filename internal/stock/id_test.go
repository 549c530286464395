package stock

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPurchaseIDIsFixed(t *testing.T) {
	// Purchases are kept by their IDs: another derivation would make every
	// repetition across an upgrade a second purchase.
	const want = "sale-1.25bcforc7qntgfnzdw43vaivda"
	if got := PurchaseID("sale-1", "ann@example.com", "k"); got != want {
		t.Errorf("PurchaseID = %s, want %s", got, want)
	}
}

func TestPurchaseIDTellsRequestsApart(t *testing.T) {
	seen := make(map[string][3]string)
	for _, parts := range [][3]string{
		{"a", "b", "c"}, {"a", "bc", ""}, {"a", "", "bc"}, {"a", "b", "c "}, {"a", "b\x00", "c"}, {"a", "b", "\x00c"},
		{"a", "B", "c"}, {"ab", "b", "c"}, {"a", "b", "C"},
	} {
		id := PurchaseID(parts[0], parts[1], parts[2])
		digest := id[strings.Index(id, ".")+1:]
		if other, twice := seen[digest]; twice {
			t.Errorf("%q and %q have the same digest", parts, other)
		}
		seen[digest] = parts
		if PurchaseID(parts[0], parts[1], parts[2]) != id {
			t.Errorf("%q has two IDs", parts)
		}
	}
}

func TestSaleOf(t *testing.T) {
	digest := strings.Repeat("a", 26)
	for id, want := range map[string]string{
		PurchaseID("sale-1", "ann", "k"):            "sale-1",
		"s." + digest:                               "s",
		"":                                          "",
		"sale-1":                                    "",
		"." + digest:                                "",
		"Sale." + digest:                            "",
		"sale." + digest + "a":                      "",
		"sale." + digest[1:]:                        "",
		"sale." + strings.ToUpper(digest):           "",
		"sale." + digest[1:] + "1":                  "",
		"sale." + digest[1:] + "\n":                 "",
		"sale.x." + digest:                          "",
		strings.Repeat("s", 65) + "." + digest:      "",
		"sale:buyers." + digest:                     "",
		"sale." + digest[:25] + "\xff":              "",
		"sale." + digest + "." + digest:             "",
		"sale." + digest[:24] + "\r\n":              "",
		strings.Repeat("s", 64) + "." + digest:      strings.Repeat("s", 64),
		"../../etc/passwd." + digest:                "",
		"sale ." + digest:                           "",
		"sale." + strings.Repeat("a", 25) + "é"[:1]: "",
	} {
		got, ok := SaleOf(id)
		if got != want || ok != (want != "") {
			t.Errorf("SaleOf(%q) = %q, %v, want %q", id, got, ok, want)
		}
	}
}

func FuzzSaleOf(f *testing.F) {
	f.Add("sale", "ann", "key")
	f.Fuzz(func(t *testing.T, saleID, userID, key string) {
		id := PurchaseID(saleID, userID, key)
		if got, ok := SaleOf(id); ok != ValidID(saleID) || ok && got != saleID {
			t.Errorf("SaleOf(%q) = %q, %v", id, got, ok)
		}
	})
}

func TestRandomKey(t *testing.T) {
	key, err := RandomKey(strings.NewReader("0123456789abcdefXYZ"))
	if want := "30313233343536373839616263646566"; key != want || err != nil {
		t.Errorf("RandomKey = %s, %v, want %s", key, err, want)
	}
	broken := errors.New("no entropy")
	if _, err := RandomKey(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error is %v, want the source's", err)
	}
}
