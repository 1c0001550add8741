package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// TestDone checks that a source of files of each format other than text leaves out the rows in Options.Done, and reads
// all other rows with the right places and positions.
func TestDone(t *testing.T) {
	const rows = 40_000
	schema := schemaOf(t, "K INT64", 0)
	for _, format := range []Format{Parquet, Arrow, Avro} {
		name := filepath.Join(t.TempDir(), "t."+string(format))
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWriter(f, format, schema)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < rows; from += 1000 {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for k := range 1000 {
				b.Field(0).(*array.Int64Builder).Append(int64(from + k))
			}
			if err := w.Write(b.NewRecordBatch()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		done := []bulk.Extent{{File: name, From: 0, To: 1500}, {File: name, From: 30_000, To: 30_001}, {File: name, From: 9_000, To: 20_000}, {File: "other", To: rows}}
		source, err := Open([]string{name}, Options{Done: done})
		if err != nil {
			t.Fatal(err)
		}
		segments, err := source.Segments(t.Context(), 8)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, s := range segments {
			err := bulk.EachOf(t.Context(), s, func(batch arrow.RecordBatch, from bulk.Reader) error {
				places, positions := from.Places(), from.Positions()
				for row := range int(batch.NumRows()) {
					k := batch.Column(0).(*array.Int64).Value(row)
					if p := places(row); p.Row != k+1 || positions(row) != k || positions(row+1) != k+1 {
						t.Fatalf("%s: row %d is at %v, position %d", format, k, p, positions(row))
					}
					got = append(got, k)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(got)
		var want []int64
		for k := range int64(rows) {
			if k >= 1500 && (k < 9_000 || k >= 20_000) && k != 30_000 {
				want = append(want, k)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows in place of %d", format, len(got), len(want))
		}
	}
}

// TestFind checks that Find finds two extents by their text, wherever they now are in the file. Find must find each
// extent at most once, only as whole rows, and never within quotes. The test compares the offsets at which the extents
// begin. The offset is 0 if the extent is not in the file.
func TestFind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const head, one, two = "K,V\n", "1,\"a\nb\"\n2,x\n", "3,y\n4,z\n"
	write(head + one + two)
	var prints []Fingerprint
	for _, part := range []string{one, two} {
		from := int64(strings.Index(head+one+two, part))
		p, err := Options{}.Fingerprint(bulk.Extent{File: name, From: from, To: from + int64(len(part))})
		if err != nil {
			t.Fatal(err)
		}
		prints = append(prints, p)
	}
	for text, want := range map[string][2]int{
		head + one + two:                      {4, 4 + len(one)},
		head + two + one:                      {4 + len(two), 4},
		head + "0,new\n" + one + "9,\n" + two: {10, 10 + len(one) + 3},
		head + one + one:                      {4, 0},
		head + one + "3,y\n4,zz\n":            {4, 0},
		head + "0,\"\n" + two + "\"\n":        {0, 0},
		head + one + strings.TrimSpace(two):   {4, 0},
		head:                                  {0, 0},
	} {
		write(text)
		found, err := Options{}.Find(name, prints)
		if err != nil || found[0].From != int64(want[0]) || found[1].From != int64(want[1]) {
			t.Errorf("%q: %v, %v, want %v", text, err, found, want)
		}
	}
	write(head + strings.Repeat("3,y\n", 200_000)) // many lines that equal the first line of an extent that is not in the file
	if found, err := (Options{}).Find(name, prints); err != nil || found[1].To != 0 {
		t.Errorf("%v, %v", err, found)
	}
}
