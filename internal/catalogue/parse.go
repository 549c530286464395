package catalogue

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"flashsale/internal/stock"
)

// The columns. All but the last must be there; an empty starts_at is a sale
// that sells at once, an empty ends_at one that never ends by itself.
var columns = []string{"item_id", "title", "price", "stock", "per_user_limit", "variant", "starts_at", "ends_at", "sale_id"}

const allowedText = "UTF-8, with or without a byte order mark"

const optionalColumn = "sale_id" // a sale's ID is its item's unless it says otherwise

// Parse reads a catalogue whose sales use these variants; lacking says of others
// what they need, as in "needs etcd". It returns either every sale, in the file's
// order, or a *ProblemsError (ErrTooLarge, or the reader's error) and no sale.
func Parse(r io.Reader, variants []string, lacking map[string]string) ([]stock.Sale, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: allowed are %d bytes", ErrTooLarge, MaxBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	p := parser{variants: variants, lacking: lacking, lines: make(map[string]int)}
	if problem, wrong := otherFormat(text); wrong {
		p.problems.add(problem)
		return nil, p.problems.err()
	}
	p.csv = csv.NewReader(bytes.NewReader(text))
	p.csv.FieldsPerRecord = -1 // counted here, to go on with the next line
	if p.header() {
		p.body()
	}
	if err := p.problems.err(); err != nil {
		return nil, err
	}
	return p.sales, nil
}

type parser struct {
	csv      *csv.Reader
	variants []string
	lacking  map[string]string
	columns  []string // as the header has them
	sales    []stock.Sale
	lines    map[string]int // sale ID -> line
	problems ProblemsError
}

// header reads the column names and reports whether the rest can be read.
func (p *parser) header() bool {
	record, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		p.problems.add(Problem{Reason: "the file is empty", Allowed: "a header and a line for each sale"})
		return false
	}
	if err != nil {
		p.problems.add(malformed(err))
		return false
	}
	line, _ := p.csv.FieldPos(0)
	p.columns = slices.Clone(record)
	for i, name := range record {
		switch {
		case !utf8.ValidString(name):
			p.problems.add(Problem{Line: line, Value: name, Reason: notUTF8(name), Allowed: allowedText})
		case !slices.Contains(columns, name):
			p.problems.add(Problem{Line: line, Column: name, Value: name, Reason: "is an unknown column", Allowed: strings.Join(columns, ", ")})
		case slices.Index(record, name) < i:
			p.problems.add(Problem{Line: line, Column: name, Value: name, Reason: "is there twice", Allowed: "each column once"})
		}
	}
	var missing []string
	for _, name := range columns {
		if name != optionalColumn && !slices.Contains(record, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		p.problems.add(Problem{Line: line, Reason: "the header lacks " + strings.Join(missing, ", "), Allowed: strings.Join(columns, ", ") + " (" + optionalColumn + " may be left out)"})
	}
	return len(p.problems.Problems) == 0
}

func (p *parser) body() {
	records := 0
	for ; ; records++ {
		record, err := p.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if records == MaxSales {
			p.problems.addFirst(Problem{Reason: "too many sales", Allowed: strconv.Itoa(MaxSales)})
			return
		}
		if err != nil {
			p.problems.add(malformed(err))
			continue
		}
		line, _ := p.csv.FieldPos(0)
		if len(record) != len(p.columns) {
			p.problems.add(Problem{Line: line, Reason: fmt.Sprintf("has %d values", len(record)), Allowed: fmt.Sprintf("%d, as the header has", len(p.columns))})
			continue
		}
		p.sale(line, record)
	}
	if records == 0 {
		p.problems.add(Problem{Reason: "there is no sale below the header", Allowed: "a line for each sale"})
	}
}

// sale takes one line. What a value must look like is decided in values.go,
// what a sale may be in stock, and only how sales go together here.
func (p *parser) sale(line int, record []string) {
	value := func(column string) string {
		if i := slices.Index(p.columns, column); i >= 0 {
			return record[i]
		}
		return ""
	}
	bad := make(map[string]bool)
	report := func(column, reason, allowed string) {
		if !bad[column] {
			p.problems.add(Problem{Line: line, Column: column, Value: value(column), Reason: reason, Allowed: allowed})
		}
		bad[column] = true
	}

	sale := stock.Sale{
		ID: value("sale_id"), ItemID: value("item_id"), Title: value("title"), Variant: value("variant"),
		PriceCents: 0, Stock: 1, PerUserLimit: 1, Fencing: true,
	}
	for _, column := range p.columns {
		if v := value(column); !utf8.ValidString(v) {
			report(column, notUTF8(v), allowedText)
		}
	}
	var ok bool
	if sale.PriceCents, ok = cents(value("price")); !ok {
		report("price", "is no price", allowedPrice)
	}
	if sale.Stock, ok = whole(value("stock")); !ok {
		report("stock", "is no whole number", allowedWhole)
	}
	if sale.PerUserLimit, ok = whole(value("per_user_limit")); !ok {
		report("per_user_limit", "is no whole number", allowedWhole)
	}
	if sale.StartsAt, ok = instant(value("starts_at")); !ok {
		report("starts_at", "is no instant", allowedInstant)
	}
	if sale.EndsAt, ok = instant(value("ends_at")); !ok {
		report("ends_at", "is no instant", allowedInstant)
	}
	idColumn := "sale_id"
	if sale.ID == "" {
		sale.ID, idColumn = sale.ItemID, "item_id"
	}

	var invalid *stock.InvalidError
	if err := sale.ValidateFor(p.variants); errors.As(err, &invalid) {
		for _, f := range invalid.Fields {
			reason := f.Reason
			if needs := p.lacking[sale.Variant]; f.Field == "variant" && needs != "" {
				reason += ", it " + needs
			}
			report(columnOf(f.Field, idColumn), reason, allowedIn(f))
		}
	} else if err != nil {
		report("", err.Error(), "")
	}
	if first, twice := p.lines[sale.ID]; twice {
		report(idColumn, fmt.Sprintf("is the sale of line %d", first), "each sale once")
	} else {
		p.lines[sale.ID] = line
	}
	p.sales = append(p.sales, sale)
}

// columnOf is where the value of a sale's field came from.
func columnOf(field, idColumn string) string {
	switch field {
	case "id":
		return idColumn
	case "price_cents":
		return "price"
	default:
		return field
	}
}

// allowedIn says what is allowed in the catalogue's terms.
func allowedIn(f stock.FieldError) string {
	if f.Field == "price_cents" {
		return fmt.Sprintf("0 to %d", stock.MaxPriceCents/100)
	}
	return f.Allowed
}

// malformed turns what the CSV reader says into a problem with its line.
func malformed(err error) Problem {
	problem := Problem{Reason: err.Error()}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		problem.Line = parse.Line
		problem.Reason = fmt.Sprintf("%s at character %d", strings.TrimPrefix(parse.Err.Error(), "csv: "), parse.Column)
		problem.Allowed = `a value with commas or quotes in quotes: "say ""hi"", please"`
	}
	return problem
}

// notUTF8 says where a value stops being text.
func notUTF8(value string) string {
	at := 0
	for at < len(value) {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return fmt.Sprintf("is not UTF-8 at its byte %d", at+1)
}

// otherFormat recognizes a file that as a whole is something else, of which a
// complaint about each value would say nothing.
func otherFormat(text []byte) (Problem, bool) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return Problem{Line: 1, Reason: "is not UTF-8 but UTF-16", Allowed: allowedText}, true
	}
	line := 1 + bytes.Count(text[:len(text)-len(bytes.TrimLeft(text, "\r\n"))], []byte("\n"))
	header, _, _ := bytes.Cut(bytes.TrimLeft(text, "\r\n"), []byte("\n"))
	for _, s := range []struct{ separator, name string }{{";", "semicolons"}, {"\t", "tabs"}} {
		if bytes.Contains(header, []byte(s.separator)) && !bytes.Contains(header, []byte(",")) {
			return Problem{Line: line, Reason: "the header has " + s.name + " between the columns", Allowed: "a comma between columns, in every line"}, true
		}
	}
	return Problem{}, false
}
