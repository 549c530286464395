package catalogue

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"flashsale/internal/stock"
)

var variants = []string{"none", "setnx", "watchdog", "atomic"}

const header = "item_id,title,price,stock,per_user_limit,variant,starts_at,ends_at\n"

func parse(text string) ([]stock.Sale, error) { return Parse(strings.NewReader(text), variants, nil) }

func TestParse(t *testing.T) {
	lamp := stock.Sale{ID: "lamp", ItemID: "lamp", Title: "A lamp", PriceCents: 1990, Stock: 5, PerUserLimit: 2, Variant: "atomic", Fencing: true}
	with := func(change func(*stock.Sale)) []stock.Sale {
		sale := lamp
		change(&sale)
		return []stock.Sale{sale}
	}
	for name, test := range map[string]struct {
		text string
		want []stock.Sale
	}{
		"plain":                      {header + "lamp,A lamp,19.90,5,2,atomic,,\n", with(func(*stock.Sale) {})},
		"no newline at end":          {header + "lamp,A lamp,19.90,5,2,atomic,,", with(func(*stock.Sale) {})},
		"one decimal":                {header + "lamp,A lamp,19.9,5,2,atomic,,", with(func(*stock.Sale) {})},
		"no decimals":                {header + "lamp,A lamp,20,5,2,atomic,,", with(func(s *stock.Sale) { s.PriceCents = 2000 })},
		"free":                       {header + "lamp,A lamp,0.00,5,2,atomic,,", with(func(s *stock.Sale) { s.PriceCents = 0 })},
		"exact where a float is not": {header + "lamp,A lamp,999999999.99,5,2,atomic,,", with(func(s *stock.Sale) { s.PriceCents = 99999999999 })},
		"CRLF":                       {strings.ReplaceAll(header, "\n", "\r\n") + "lamp,A lamp,19.90,5,2,atomic,,\r\n", with(func(*stock.Sale) {})},
		"byte order mark":            {"\ufeff" + header + "lamp,A lamp,19.90,5,2,atomic,,\n", with(func(*stock.Sale) {})},
		"blank lines":                {header + "\n\nlamp,A lamp,19.90,5,2,atomic,,\n\n", with(func(*stock.Sale) {})},
		"header in any order":        {"ends_at,starts_at,variant,per_user_limit,stock,price,title,item_id\n,,atomic,2,5,19.90,A lamp,lamp\n", with(func(*stock.Sale) {})},
		"quoted commas and quotes":   {header + `lamp,"A ""lamp"", bright",19.90,5,2,atomic,,`, with(func(s *stock.Sale) { s.Title = `A "lamp", bright` })},
		"not ASCII":                  {header + "lamp,茶 für dich,19.90,5,2,atomic,,", with(func(s *stock.Sale) { s.Title = "茶 für dich" })},
		"sale_id": {"sale_id," + header + "spring,lamp,A lamp,19.90,5,2,atomic,,\n,lamp,A lamp,19.90,5,2,atomic,,\n",
			append(with(func(s *stock.Sale) { s.ID = "spring" }), lamp)},
		"window": {header + "lamp,A lamp,19.90,5,2,atomic,2030-01-31T20:00:00+08:00,2030-01-31T13:00:00.5Z\n", with(func(s *stock.Sale) {
			s.StartsAt = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
			s.EndsAt = time.Date(2030, 1, 31, 13, 0, 0, 5e8, time.UTC)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			sales, err := parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(sales, test.want) {
				t.Errorf("got  %+v\nwant %+v", sales, test.want)
			}
		})
	}
}

// Each value in turn is wrong; the rest of the line is right.
func TestWrongValueIsNamed(t *testing.T) {
	order := strings.Split(strings.TrimSpace(header), ",")
	good := []string{"lamp", "A lamp", "19.90", "5", "2", "atomic", "2030-01-31T20:00:00Z", "2030-01-31T21:00:00Z"}
	for column, values := range map[string][]string{
		"item_id":        {"", "Lamp", "a b", "-a", "ä", strings.Repeat("a", 65), " lamp", "a.b"},
		"title":          {"", " ", strings.Repeat("x", 300), "a\x00b"},
		"price":          {"", "-1", "+1", "1.999", "1.", ".5", "1e3", "0x10", "1_000", "1,5", " 1", "NaN", "Inf", "9999999999999999", "1000000001", "١"},
		"stock":          {"", "0", "-1", "+5", "1.0", "1e3", "1000000001", "99999999999999999999", "five"},
		"per_user_limit": {"", "0", "-2", "2.5", "9999999999"},
		"variant":        {"", "watchdogs", "NONE", "striped"},
		"starts_at":      {"2030-01-31", "2030-01-31T20:00:00", "2030-01-31 20:00:00Z", "2030-02-30T20:00:00Z", "now", "1890-01-01T00:00:00Z", "2030-01-31T20:00:00,5Z"},
		"ends_at":        {"2030-01-31T20:00:00Z", "2030-01-31T19:00:00Z", "tomorrow", "2300-01-01T00:00:00Z"},
	} {
		for _, value := range values {
			fields := make([]string, len(good))
			for i, name := range order {
				fields[i] = good[i]
				if name == column {
					fields[i] = value
				}
				fields[i] = `"` + fields[i] + `"`
			}
			sales, err := parse(header + "mug,A mug,1,1,1,none,,\n" + strings.Join(fields, ",") + "\n")
			var problems *ProblemsError
			if !errors.As(err, &problems) || sales != nil {
				t.Errorf("%s %q: sales %v, error %v", column, value, sales, err)
				continue
			}
			p := problems.Problems[0]
			if len(problems.Problems) != 1 || p.Line != 3 || p.Column != column || p.Reason == "" || p.Allowed == "" {
				t.Errorf("%s %q: %+v", column, value, problems.Problems)
			}
			if !strings.HasPrefix(value, strings.TrimSuffix(p.Value, "...")) {
				t.Errorf("%s %q: reported value %q", column, value, p.Value)
			}
		}
	}
}

func TestWrongFile(t *testing.T) {
	const line = "lamp,A lamp,19.90,5,2,atomic,,\n"
	for name, test := range map[string]struct {
		text string
		want []string // in the problems, in order
	}{
		"empty":           {"", []string{"the file is empty"}},
		"only a BOM":      {"\ufeff", []string{"the file is empty"}},
		"header alone":    {header, []string{"no sale below the header"}},
		"unknown column":  {"colour," + header + "red," + line, []string{`line 1: colour "colour" is an unknown column; allowed: item_id,`}},
		"column twice":    {"stock," + header + "1," + line, []string{"line 1: stock \"stock\" is there twice"}},
		"missing column":  {strings.Replace(header, "price,", "", 1), []string{"line 1: the header lacks price; allowed: item_id,"}},
		"missing columns": {"title,stock,per_user_limit,variant,sale_id\n", []string{"line 1: the header lacks item_id, price, starts_at, ends_at; allowed: "}},
		"semicolons":      {strings.ReplaceAll(header, ",", ";"), []string{"line 1: the header has semicolons between the columns; allowed: a comma"}},
		"tabs, quoted":    {"\"item_id\"\t\"title\"\nx\ty\n", []string{"line 1: the header has tabs"}},
		"too few values":  {header + "lamp,A lamp\n" + line, []string{"line 2: has 2 values; allowed: 8"}},
		"too many values": {header + line + strings.TrimSpace(line) + ",x,y\n", []string{"line 3: has 10 values"}},
		"open quote":      {header + line + "\"mug,A mug\n", []string{`line 3: extraneous or missing " in quoted-field`}},
		"bare quote":      {header + "mug,A \"mug\",1,1,1,none,,\n" + line, []string{`line 2: bare " in non-quoted-field`}},
		"not UTF-8":       {header + line + "m\xffg,A mug,1,1,1,none,,\n", []string{`line 3: item_id "m\xffg" is not UTF-8 at its byte 2`}},
		"not UTF-8, and more": {header + "lamp,L\xe4mp,x,5,2,atomic,,\nmug,A mug,1,0,1,none,,\n", []string{
			`line 2: title "L\xe4mp" is not UTF-8 at its byte 2`, `line 2: price "x"`, `line 3: stock "0"`}},
		"header not UTF-8":        {"t\xe4tle," + header + "x," + line, []string{`line 1: "t\xe4tle" is not UTF-8`}},
		"UTF-16":                  {"\xff\xfei\x00t\x00", []string{"line 1: is not UTF-8"}},
		"same sale twice":         {header + line + "mug,A mug,1,1,1,none,,\n" + line, []string{`line 4: item_id "lamp" is the sale of line 2`}},
		"sale_id of another item": {"sale_id," + header + "," + line + "lamp,mug,A mug,1,1,1,none,,\n", []string{`line 3: sale_id "lamp" is the sale of line 2`}},
		"every bad line": {header + "a b,A,x,1,1,none,,\nok,A,1,1,1,none,,\nc,,1,1,1,nope,,\n", []string{
			`line 2: price "x" is no price`, `line 2: item_id "a b" has`, `line 4: title "" is missing`, `line 4: variant "nope" is not offered; allowed: one of none, setnx, watchdog, atomic`}},
		"lines of a multi-line value": {header + "lamp,\"A\nlamp\",1,1,1,none,,\nmug,A mug,x,1,1,none,,\n", []string{"line 2: title", "line 4: price"}},
	} {
		t.Run(name, func(t *testing.T) {
			sales, err := parse(test.text)
			var problems *ProblemsError
			if !errors.As(err, &problems) || sales != nil {
				t.Fatalf("sales %v, error %v", sales, err)
			}
			if len(problems.Problems) != len(test.want) {
				t.Fatalf("problems:\n%v", err)
			}
			for i, want := range test.want {
				if got := problems.Problems[i].String(); !strings.Contains(got, want) {
					t.Errorf("problem %d: %s\nwant %s", i, got, want)
				}
			}
			for _, p := range problems.Problems {
				if !strings.Contains(err.Error(), p.String()) {
					t.Errorf("%q is not in %q", p, err)
				}
			}
		})
	}
}

func TestLargeFilesAreBounded(t *testing.T) {
	if _, err := Parse(endless{}, variants, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless file: %v", err)
	}

	var many strings.Builder
	many.WriteString(header)
	for i := range MaxSales + 1 {
		fmt.Fprintf(&many, "item-%d,An item,1,1,1,none,,\n", i)
	}
	for name, text := range map[string]string{
		"good ones": many.String(),
		"bad ones":  header + strings.Repeat("A B,,x,x,x,x,x,x\n", MaxSales+1),
	} {
		var problems *ProblemsError
		if _, err := parse(text); !errors.As(err, &problems) || problems.Problems[0].String() != "too many sales; allowed: 10000" || len(problems.Problems) > maxProblems {
			t.Errorf("too many sales, %s: %.200v", name, err)
		}
	}

	_, err := parse(header + strings.Repeat("A B,,x,x,x,x,x,x\n", 1000))
	var problems *ProblemsError
	if !errors.As(err, &problems) || len(problems.Problems) != maxProblems || problems.More < 7000 || len(err.Error()) > 50_000 {
		t.Errorf("many problems: %.200v", err)
	}
}

// Nothing is loaded that nobody can buy.
func TestVariantThatNeedsSomethingIsRefused(t *testing.T) {
	_, err := Parse(strings.NewReader(header+"lamp,A lamp,1,5,2,etcd,,\n"), variants, map[string]string{"etcd": "needs etcd"})
	want := `line 2: variant "etcd" is not offered, it needs etcd; allowed: one of none, setnx, watchdog, atomic`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestValueIsCutBetweenCharacters(t *testing.T) {
	for value, want := range map[string]string{
		strings.Repeat("a", 61):          strings.Repeat("a", 60) + "...",
		strings.Repeat("a", 59) + "äb":   strings.Repeat("a", 59) + "...",
		"\xff" + strings.Repeat("a", 60): "\xff" + strings.Repeat("a", 59) + "...",
	} {
		if got := shorten(value); got != want {
			t.Errorf("%q: got %q", value, got)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestReadErrorIsReported(t *testing.T) {
	broken := errors.New("disk on fire")
	if _, err := Parse(failing{broken}, variants, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestDeliveredCatalogueIsGood(t *testing.T) {
	file, err := os.Open("../../deploy/catalogue.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sales, err := Parse(file, variants, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(sales) < 6 {
		t.Errorf("%d sales", len(sales))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(header + "lamp,A lamp,19.90,5,2,atomic,,\n"))
	f.Add([]byte("\ufeff" + header + "\"lamp\",\"A \"\"lamp\"\"\",1,5,2,none,2030-01-31T20:00:00Z,\r\n"))
	f.Add([]byte(header + "x\n\"\n"))
	f.Add([]byte("item_id,item_id\n\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		sales, err := Parse(strings.NewReader(string(text)), variants, nil)
		if (err == nil) == (len(sales) == 0) {
			t.Fatalf("%d sales, error %v", len(sales), err)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Fatalf("error is not UTF-8: %q", err)
		}
		seen := make(map[string]bool)
		for _, sale := range sales {
			if err := sale.ValidateFor(variants); err != nil || seen[sale.ID] || !sale.Fencing {
				t.Fatalf("%+v: %v", sale, err)
			}
			seen[sale.ID] = true
		}
	})
}
