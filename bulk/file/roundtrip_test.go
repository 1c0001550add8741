package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	parquetfile "github.com/apache/arrow-go/v18/parquet/file"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// edges lists values at the limits of each type, as texts.
var edges = []struct {
	ddl    string
	values []string
}{
	{"BOOL", []string{"true", "false"}},
	{"INT64", []string{"0", "-9223372036854775808", "9223372036854775807"}},
	{"FLOAT32", []string{"0", "-0", "3.4028235e+38", "1e-45", "NaN", "Infinity", "-Infinity", "0.1"}},
	{"FLOAT64", []string{"0", "-0", "1.7976931348623157e+308", "5e-324", "NaN", "Infinity", "-Infinity", "0.1"}},
	{"NUMERIC", []string{"0", "1", "-1", "0.000000001", "-0.000000001", "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999", "0.000000128", "-0.000000129"}},
	{"STRING(MAX)", []string{"", "a", "NULL", "null", `\N`, `"`, `""`, `,`, "|", `\`, `\n`, "\n", "\r\n", "\r", "\t", " a ", "é 🐦", "\x00\x01", "'", "{}", `a"b,c` + "\n|\\"}},
	{"BYTES(MAX)", []string{"", "AA==", "AP8=", "Cg=="}},
	{"DATE", []string{"0001-01-01", "1969-12-31", "1970-01-01", "2024-02-29", "9999-12-31"}},
	{"TIMESTAMP", []string{"1677-09-21T00:12:43.145224193Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "2262-04-11T23:47:16.854775807Z"}},
	{"JSON", []string{"null", "1", `"a"`, `{"a":[1,null,{"b":"\u00e9\n|,\\\""}]}`, "[]", `{"x":"a, b"}`}},
	{"UUID", []string{"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "4192bff0-e1e0-43ce-a4db-912808c32493"}},
	{"PROTO<a.b.C>", []string{"", "CAE="}},
	{"ENUM<a.b.E>", []string{"0", "-1", "2147483647"}},
	{"ARRAY<INT64>", []string{"[]", "[null]", "[1,null,-9223372036854775808]"}},
	{"ARRAY<FLOAT64>", []string{"[]", `[null,"NaN",1.5,"-Infinity"]`}},
	{"ARRAY<FLOAT32>", []string{"[]", `[null,"NaN",0.1,"-Infinity",3.4028235e+38]`}},
	{"ARRAY<PROTO<a.b.C>>", []string{`["",null,"CAE="]`}},
	{"ARRAY<ENUM<a.b.E>>", []string{`[0,null,-1]`}},
	{"ARRAY<BOOL>", []string{"[]", "[true,null,false]"}},
	{"ARRAY<STRING(MAX)>", []string{"[]", `["",null,"a\n\"|,\\","[]"]`}},
	{"ARRAY<BYTES(MAX)>", []string{`["","AP8=",null]`}},
	{"ARRAY<NUMERIC>", []string{`["-0.000000001",null,"1"]`}},
	{"ARRAY<DATE>", []string{`["0001-01-01",null]`}},
	{"ARRAY<TIMESTAMP>", []string{`["2026-11-22T10:00:00.123456789Z",null]`}},
	{"ARRAY<JSON>", []string{`["{\"a\":1}","null",null,"\"s\""]`}},
	{"ARRAY<UUID>", []string{`["4192bff0-e1e0-43ce-a4db-912808c32493",null]`}},
}

// edgeBatch returns a batch with a column for each type. In each column, the values of edges alternate with NULLs.
func edgeBatch(t *testing.T, timestamps arrowtype.Timestamps) arrow.RecordBatch {
	t.Helper()
	var columns []string
	rows := 0
	for i, e := range edges {
		columns = append(columns, fmt.Sprintf("C%d %s", i, e.ddl))
		rows = max(rows, 2*len(e.values))
	}
	schema := schemaOf(t, strings.Join(columns, ", "), timestamps)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, e := range edges {
		kind, _, err := arrowtype.ParseDDL(e.ddl)
		if err != nil {
			t.Fatal(err)
		}
		a, err := arrowtype.NewAppender(b.Field(i), kind)
		if err != nil {
			t.Fatal(err)
		}
		values := e.values
		if e.ddl == "TIMESTAMP" && timestamps != arrowtype.Nanoseconds {
			values = append(values, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
		}
		for row := range rows {
			if row%2 == 1 || row/2 >= len(values) {
				a.AppendNull()
			} else if err := a.AppendText([]byte(values[row/2])); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.NewRecordBatch()
}

// save writes the rows of a batch to a file, with several calls of the writer.
func save(t *testing.T, format Format, batch arrow.RecordBatch) string {
	t.Helper()
	var content bytes.Buffer
	w, err := NewWriter(&content, format, batch.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for row := int64(0); row < batch.NumRows(); row += 7 {
		if err := w.Write(batch.NewSlice(row, min(row+7, batch.NumRows()))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "edges."+string(format), content.String())
}

// place matches the file's name and the line or row number at the start of a printed row.
var place = regexp.MustCompile(`^edges\.[a-z]+(:|, row )\d+ `)

// TestRoundTrips checks that every value of edges can be written to a file and read back in every format, with each
// representation of timestamps.
func TestRoundTrips(t *testing.T) {
	for timestamps, name := range []string{"ns", "us", "text"} {
		batch := edgeBatch(t, arrowtype.Timestamps(timestamps))
		want, err := printed(batch, func(int) bulk.Place { return bulk.Place{File: "edges.x", Line: 1} })
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range Formats {
			path := save(t, format, batch)
			source, err := Open([]string{path}, Options{Schema: batch.Schema()})
			if err != nil {
				t.Errorf("%s, %s: %v", format, name, err)
				continue
			}
			rows, err := readAll(t, source, 3)
			if err != nil {
				t.Errorf("%s, %s: %v", format, name, err)
				continue
			}
			for i, row := range rows {
				rows[i] = place.ReplaceAllString(row, " ")
			}
			for i := range want {
				want[i] = place.ReplaceAllString(want[i], " ")
				if i >= len(rows) || rows[i] != want[i] {
					t.Errorf("%s, %s: row %d of %d is\n%q, want\n%q", format, name, i, len(rows), rows[min(i, len(rows)-1)], want[i])
					break
				}
			}
			for i, f := range source.Schema().Fields() {
				if ddl, _, err := arrowtype.SpannerType(f); err != nil || ddl != edges[i].ddl {
					t.Errorf("%s: column %s is %s, %v; want %s", format, f.Name, ddl, err, edges[i].ddl)
				}
			}
		}
	}
}

// TestDamaged reads files that are cut off or have a wrong byte. Each error must name the file and must not be a text
// of Go's runtime. In the formats other than text, at least a third of the files must give an error. Reading must not
// panic, and must take a limited amount of memory.
func TestDamaged(t *testing.T) {
	batch := edgeBatch(t, arrowtype.Text)
	for _, format := range []Format{Parquet, Arrow, Avro, CSV, TBL, JSONLines} {
		path := save(t, format, batch)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused, r := 0, rand.New(rand.NewPCG(1, 2))
		for round := range 150 {
			bad := slices.Clone(good)
			switch {
			case round%3 == 0:
				bad = bad[:r.IntN(len(bad))]
			case round%3 == 1:
				bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			default: // a byte near the start or the end of the file, where most formats store lengths
				at := r.IntN(min(256, len(bad)))
				if r.IntN(2) == 0 {
					at = len(bad) - 1 - at
				}
				bad[at] = byte(r.IntN(256))
			}
			path := filepath.Join(t.TempDir(), "bad."+string(format))
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			source, err := Open([]string{path}, Options{Schema: batch.Schema()})
			if err == nil {
				_, err = readAll(t, source, 2)
			}
			if err != nil {
				refused++
				if !strings.Contains(err.Error(), "bad."+string(format)) || strings.Contains(err.Error(), "runtime error") {
					t.Errorf("%s, round %d: the error does not say what is wrong where: %v", format, round, err)
				}
			}
		}
		if refused < 50 && format != CSV && format != TBL && format != JSONLines {
			t.Errorf("%s: of 150 damaged files %d are refused", format, refused)
		}
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.Sys > 2<<30 {
		t.Errorf("%d bytes of memory were taken", m.Sys)
	}
}

// TestLyingParquet checks that reading a Parquet file gives an error if the footer claims a wrong number of rows for a
// row group. The error must name the file and say that the number of rows is wrong.
func TestLyingParquet(t *testing.T) {
	path := save(t, Parquet, edgeBatch(t, arrowtype.Text))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []int64{-1, 1, 1 << 40} {
		r, err := parquetfile.NewParquetReader(bytes.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		meta := r.MetaData()
		footer := len(good) - 8 - meta.Size()
		meta.RowGroups[0].NumRows += more
		meta.NumRows += more
		bad := bytes.NewBuffer(slices.Clone(good[:footer]))
		size, err := meta.WriteTo(bad, nil)
		if err != nil {
			t.Fatal(err)
		}
		bad.Write(binary.LittleEndian.AppendUint32(nil, uint32(size)))
		bad.WriteString("PAR1")
		name := write(t, "lying.parquet", bad.String())
		source, err := Open([]string{name}, Options{})
		if err == nil {
			_, err = readAll(t, source, 1)
		}
		if err == nil || !strings.Contains(err.Error(), "lying.parquet") || !strings.Contains(err.Error(), "rows in place of") {
			t.Errorf("%+d rows: %v", more, err)
		}
	}
}

// TestPlaces checks that errors for damaged files say where the damage is, and do not contain texts of Go's runtime.
func TestPlaces(t *testing.T) {
	batch := edgeBatch(t, arrowtype.Text)
	damage := func(format Format, change func(b []byte) []byte) string {
		content, err := os.ReadFile(save(t, format, batch))
		if err != nil {
			t.Fatal(err)
		}
		source, err := Open([]string{write(t, "bad."+string(format), string(change(content)))}, Options{Schema: batch.Schema(), Generated: []string{"Upper"}})
		if err == nil {
			_, err = readAll(t, source, 1)
		}
		if err == nil {
			return ""
		}
		_, text, _ := strings.Cut(err.Error(), "bad.")
		return text
	}
	set := func(at int, value byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = value; return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	for _, c := range []struct {
		format Format
		change func([]byte) []byte
		want   string
	}{
		{Parquet, cut(1), "parquet: its footer: "},
		{Parquet, set(40, 0xff), "parquet, row 1 or one behind it: "},
		{Arrow, cut(1), "arrow: its footer: it is not an Arrow IPC file, or is cut off"},
		{Avro, cut(1), "avro: the block at byte "},
		{Avro, func(b []byte) []byte { return b[:200] }, "avro: it ends within its header"},
		{Avro, func(b []byte) []byte { return bytes.Replace(b, []byte(`"string"`), []byte(`"strong"`), 1) }, `avro: the schema in its header: `},
		{JSONLines, func([]byte) []byte { return []byte("{\"C0\":true}\n{\"C0\":tru}\n") }, `jsonl:2: character 7: "tru" is not JSON`},
		{JSONLines, func([]byte) []byte { return []byte("{\"C5\":\"é\" \"C0\":true}\n") }, "jsonl:1: character 11: the line is not a JSON object: a comma or its end is missing"},
		{JSONLines, func([]byte) []byte { return []byte("{\"upper\":1}\n") }, "jsonl:1: column upper is generated: the database computes it"},
		{CSV, func([]byte) []byte { return []byte("C0,Upper\n") }, "csv: column Upper is generated: the database computes it"},
	} {
		if got := damage(c.format, c.change); !strings.HasPrefix(got, c.want) || strings.Contains(got, "runtime error") {
			t.Errorf("%s: %q, want %q", c.format, got, c.want)
		}
	}
}
