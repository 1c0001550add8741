package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// schemaOf parses columns such as "K INT64 NOT NULL, V STRING(MAX)" into a schema.
func schemaOf(t testing.TB, columns string, timestamps arrowtype.Timestamps) *arrow.Schema {
	t.Helper()
	var fields []arrow.Field
	for _, c := range strings.Split(columns, ", ") {
		name, ddl, _ := strings.Cut(c, " ")
		ddl, notNull := strings.CutSuffix(ddl, " NOT NULL")
		kind, _, err := arrowtype.ParseDDL(ddl)
		if err != nil {
			t.Fatal(err)
		}
		f, err := arrowtype.Field(name, kind, ddl, !notNull, timestamps)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil)
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll reads a source in n segments. It returns the rows as texts with their places, such as "a.csv:2 1|a". It
// prints NULL as the word NULL.
func readAll(t *testing.T, source bulk.Source, n int) (rows []string, err error) {
	t.Helper()
	segments, err := source.Segments(context.Background(), n)
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		err = bulk.EachOf(context.Background(), s, func(batch arrow.RecordBatch, from bulk.Reader) error {
			more, err := printed(batch, from.Places())
			rows = append(rows, more...)
			return err
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func printed(batch arrow.RecordBatch, places func(int) bulk.Place) (rows []string, err error) {
	for i := range int(batch.NumRows()) {
		place := places(i)
		place.File = filepath.Base(place.File)
		row := place.String()
		for k, c := range batch.Columns() {
			row += " |"[min(k, 1):][:1]
			if c.IsNull(i) {
				row += "NULL"
				continue
			}
			format, err := arrowtype.NewFormatter(c)
			if err != nil {
				return nil, err
			}
			row = string(format([]byte(row), i))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// TestText checks that a source returns the right rows, with their places, for text files in each variant of the
// syntax.
func TestText(t *testing.T) {
	for _, c := range []struct {
		name, content, columns string
		options                Options
		want                   []string
	}{
		{"a.csv", "K,V\n1,a\n2,\n3,\"\"\n", "K INT64, V STRING(MAX)", Options{}, []string{"a.csv:2 1|a", "a.csv:3 2|NULL", "a.csv:4 3|"}},
		{"bom.csv", "\xef\xbb\xbfv,k\r\n\"a \"\"b\"\", c\",1\r\n\r\nd,2", "K INT64, V STRING(MAX)", Options{}, []string{`bom.csv:2 a "b", c|1`, "bom.csv:4 d|2"}},
		{"lines.csv", "K,V\n1,\"a\nb\r\n\"\n2,c\n", "K INT64, V STRING(MAX)", Options{}, []string{"lines.csv:2 1|a\nb\r\n", "lines.csv:5 2|c"}},
		{"tab.csv", "1\ta\n", "K INT64, V STRING(MAX)", Options{Text: TextOptions{Delimiter: '\t', NoHeader: true}}, []string{"tab.csv:1 1|a"}},
		{"quotes.csv", "1,5\" disk\n", "K INT64, V STRING(MAX)", Options{Text: TextOptions{NoQuotes: true, NoHeader: true}}, []string{`quotes.csv:1 1|5" disk`}},
		{"null.csv", "1,\\N\n2,\"\\N\"\n3,\n", "K INT64, V STRING(MAX)", Options{Text: TextOptions{Null: `\N`, NoHeader: true}}, []string{"null.csv:1 1|NULL", `null.csv:2 2|\N`, "null.csv:3 3|"}},
		{"latin.csv", "1,\xe9\n", "K INT64, V STRING(MAX)", Options{Text: TextOptions{Encoding: "ISO-8859-1", NoHeader: true}}, []string{"latin.csv:1 1|é"}},
		{"left.csv", "A,B,C\na,x,1\n", "K INT64, V STRING(MAX)", Options{Columns: []string{"V", "-", "K"}}, []string{"left.csv:2 a|1"}},
		{"left.csv", "a,x,1\n", "K INT64, V STRING(MAX)", Options{Columns: []string{"V", "-", "K"}, Text: TextOptions{NoHeader: true}}, []string{"left.csv:1 a|1"}},
		{"a.tbl", "1|a|\n2||\n3|\\N|\n4|\\|\\n\\\\|\n5|b\n", "K INT64, V STRING(MAX)", Options{}, []string{"a.tbl:1 1|a", "a.tbl:2 2|", "a.tbl:3 3|NULL", "a.tbl:4 4||\n\\", "a.tbl:5 5|b"}},
		{"array.csv", "K,V\n1,\"[1,null]\"\n2,[]\n", "K INT64, V ARRAY<INT64>", Options{}, []string{"array.csv:2 1|[1,null]", "array.csv:3 2|[]"}},
		{"infer.csv", "K,F,D,T,B,S\n1,1.5,2026-11-22,2026-11-22T10:00:00Z,true,x\n2,2,2026-11-23,2026-11-22 10:00:00,false,1\n", "", Options{},
			[]string{"infer.csv:2 1|1.5|2026-11-22|2026-11-22T10:00:00Z|true|x", "infer.csv:3 2|2|2026-11-23|2026-11-22T10:00:00Z|false|1"}},
		{"empty.csv", "K,V\n", "K INT64, V STRING(MAX)", Options{}, nil},
	} {
		if c.columns != "" {
			c.options.Schema = schemaOf(t, c.columns, arrowtype.Text)
		}
		source, err := Open([]string{write(t, c.name, c.content)}, c.options)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		rows, err := readAll(t, source, 1)
		if err != nil || !slices.Equal(rows, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, rows, err, c.want)
		}
	}
}

// TestInferred checks that each column gets the narrowest type that fits its values.
func TestInferred(t *testing.T) {
	source, err := Open([]string{write(t, "x.csv", "a,b,c,d,e,f,g\n1,1,2026-01-01,2026-01-01 00:00:00,t,,1\n2,1.5,,,f,,2026-01-01\n")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range source.Schema().Fields() {
		ddl, _, err := arrowtype.SpannerType(f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Name+" "+ddl)
	}
	want := []string{"a INT64", "b FLOAT64", "c DATE", "d TIMESTAMP", "e BOOL", "f STRING(MAX)", "g STRING(MAX)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBadText checks that a malformed row ends the reading with an error that names the file and the line. If
// Options.Reject is set, the source must give the malformed row to this function instead, and must still return the
// good rows.
func TestBadText(t *testing.T) {
	for _, c := range []struct{ name, row, reason string }{
		{"a.csv", "x,a", `column K: "x" is not an INT64`},
		{"a.csv", "1", "the row has 1 columns in place of 2: V is missing"},
		{"a.csv", "1,a,b", "the row has more than 2 columns"},
		{"a.csv", `1,"a"b`, "a character other than the delimiter follows a closing quote"},
		{"a.csv", `1,5" disk`, "a quote stands within a field that does not begin with one"},
		{"a.csv", "1,\xff", "column V: the text is not UTF-8"},
		{"a.csv", ",a", "column K is NOT NULL"},
		{"a.tbl", "1", "V is missing"},
		{"a.tbl", "1|a|b", "more than 2 columns"},
		{"a.tbl", `\N|a|`, "column K is NOT NULL"},
	} {
		good := "7,g\n"
		if strings.HasSuffix(c.name, "tbl") {
			good = "7|g|\n"
		}
		path := write(t, c.name, good+c.row+"\n"+good)
		options := Options{Schema: schemaOf(t, "K INT64 NOT NULL, V STRING(MAX)", arrowtype.Text), Text: TextOptions{NoHeader: true}}
		source, err := Open([]string{path}, options)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := readAll(t, source, 1)
		if err == nil || !strings.Contains(err.Error(), c.name+":2: ") || !strings.Contains(err.Error(), c.reason) || len(rows) != 1 {
			t.Errorf("%s, %q: rows %q, error %v, want one of line 2: %s", c.name, c.row, rows, err, c.reason)
		}
		var bad []bulk.BadRow
		options.Reject = func(b bulk.BadRow) error { bad = append(bad, b); return nil }
		if source, err = Open([]string{path}, options); err != nil {
			t.Fatal(err)
		}
		rows, err = readAll(t, source, 1)
		if err != nil || len(rows) != 2 || len(bad) != 1 || bad[0].Line != 2 || !strings.Contains(bad[0].Reason, c.reason) || !strings.HasPrefix(bad[0].Text, c.row[:1]) {
			t.Errorf("%s, %q with Reject: rows %q, bad %v, error %v", c.name, c.row, rows, bad, err)
		}
	}
	for content, want := range map[string]string{
		"\xff\xfe1\x00": "is UTF-16: convert it to UTF-8 first",
		"K,W\n":         "the table has no column W",
		"K,K\n":         "has the column K twice",
		"K,\"V\n":       "the header: a quote is opened and not closed",
		"K,V\n1,\"a\n2": ":2: a quote is opened and not closed",
	} {
		source, err := Open([]string{write(t, "b.csv", content)}, Options{Schema: schemaOf(t, "K INT64, V STRING(MAX)", arrowtype.Text)})
		if err == nil {
			_, err = readAll(t, source, 1)
		}
		if err == nil || !strings.Contains(err.Error(), "b.csv") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
	options := Options{Schema: schemaOf(t, "K INT64, V STRING(MAX)", arrowtype.Text), Columns: []string{"K", "-"}}
	if _, err := Open([]string{write(t, "a.jsonl", `{"K": 1, "": 2}`+"\n")}, options); err == nil || !strings.Contains(err.Error(), "no order") {
		t.Errorf("JSON lines with the column -: %v", err)
	}
}

// TestSegments checks that each row of a CSV file is read once, and with the right line number, however many segments
// the file is divided into. The file has line ends and commas within quotes. For a TBL file, only the number of rows is
// checked.
func TestSegments(t *testing.T) {
	var csv, tbl strings.Builder
	var want []string
	for i, line := 0, 1; csv.Len() < 8*smallestSegment; i++ {
		value := strings.Repeat("x", i%97)
		switch i % 5 {
		case 1:
			value = "a\nb,\"" + value
		case 3:
			value = "\n\n" + value + "\"\"\n"
		}
		fmt.Fprintf(&csv, "%d,\"%s\"\n", i, strings.ReplaceAll(value, `"`, `""`))
		fmt.Fprintf(&tbl, "%d|%s|\n", i, strings.ReplaceAll(value, "\n", `\n`))
		want = append(want, fmt.Sprintf("a.csv:%d %d|%s", line, i, value))
		line += 1 + strings.Count(value, "\n")
	}
	schema := schemaOf(t, "K INT64, V STRING(MAX)", arrowtype.Text)
	for _, n := range []int{1, 2, 3, 7, 1000} {
		source, err := Open([]string{write(t, "a.csv", csv.String())}, Options{Schema: schema, Text: TextOptions{NoHeader: true}})
		if err != nil {
			t.Fatal(err)
		}
		segments, err := source.Segments(t.Context(), n)
		if err != nil || len(segments) != min(n, 8) {
			t.Errorf("%d segments in place of %d, %v", len(segments), n, err)
		}
		if rows, err := readAll(t, source, n); err != nil || !slices.Equal(rows, want) {
			t.Errorf("%d segments: %d rows in place of %d, %v", n, len(rows), len(want), err)
		}
		if source, err = Open([]string{write(t, "a.tbl", tbl.String())}, Options{Schema: schema}); err != nil {
			t.Fatal(err)
		}
		if rows, err := readAll(t, source, n); err != nil || len(rows) != len(want) {
			t.Errorf("%d segments of tbl: %d rows in place of %d, %v", n, len(rows), len(want), err)
		}
	}
}

// TestStrayQuotes checks that the reader reports a row with malformed quotes as bad, and reads all other rows. It reads
// the text in different numbers of segments.
func TestStrayQuotes(t *testing.T) {
	var csv strings.Builder
	var want, wantBad []string
	for i, line := 0, 1; csv.Len() < 8*smallestSegment; i++ {
		row, bad := fmt.Sprintf("%d,\"begin\n%d,in a text\n,\"\",\"\"\nend\"", i, i), false
		switch i % 700 {
		case 3:
			row, bad = fmt.Sprintf("%d,un\"quoted", i), true
		case 77:
			row, bad = fmt.Sprintf("%d,\"a\"b", i), true
		case 140:
			row, bad = fmt.Sprintf("%d,5\" disk,\"of two\nlines\"", i), true
		case 333:
			row, bad = fmt.Sprintf("%d,\"two\nlines\",6\" disk", i), true
		}
		fmt.Fprintf(&csv, "%s\n", row)
		if bad {
			wantBad = append(wantBad, fmt.Sprintf("a.csv:%d %s", line, row))
		} else {
			want = append(want, fmt.Sprintf("a.csv:%d %d|begin\n%d,in a text\n,\",\"\nend", line, i, i))
		}
		line += 1 + strings.Count(row, "\n")
	}
	name := write(t, "a.csv", csv.String())
	for _, n := range []int{1, 2, 3, 7, 1000} {
		var mu sync.Mutex
		var bad []string
		source, err := Open([]string{name}, Options{Schema: schemaOf(t, "K INT64, V STRING(MAX)", arrowtype.Text), Text: TextOptions{NoHeader: true}, Reject: func(b bulk.BadRow) error {
			mu.Lock()
			defer mu.Unlock()
			bad = append(bad, fmt.Sprintf("%s:%d %s", filepath.Base(b.Place.File), b.Place.Line, b.Text))
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := readAll(t, source, n)
		if err != nil || !slices.Equal(rows, want) {
			t.Errorf("%d segments: %d rows in place of %d, %v", n, len(rows), len(want), err)
		}
		slices.Sort(bad)
		slices.Sort(wantBad)
		if !slices.Equal(bad, wantBad) {
			t.Errorf("%d segments: bad rows %q, want %q", n, bad, wantBad)
		}
	}
}

// TestEach checks that several readers together read each row of several files once.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		var rows strings.Builder
		for k := range 20_000 {
			fmt.Fprintf(&rows, "%d|%d|\n", k*5+i, k)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("t.tbl.%d", i)), []byte(rows.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := Open([]string{filepath.Join(dir, "t.tbl.*")}, Options{Schema: schemaOf(t, "K INT64, V INT64", 0)})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	counts := map[string]int{}
	err = bulk.Each(t.Context(), source, 3, func(_ context.Context, reader int, batch arrow.RecordBatch) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range int(batch.NumRows()) {
			counts[batch.Column(0).ValueStr(i)]++
		}
		return nil
	})
	if err != nil || len(counts) != 100_000 {
		t.Errorf("%d rows in place of 100000, %v", len(counts), err)
	}
	for k, n := range counts {
		if n != 1 {
			t.Fatalf("row %s is read %d times", k, n)
		}
	}
}
