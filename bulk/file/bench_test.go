package file

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bench/tpch"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// customerColumns are the columns of TPC-H's table customer.
const customerColumns = "c_custkey INT64 NOT NULL, c_name STRING(25) NOT NULL, c_address STRING(40) NOT NULL, c_nationkey INT64 NOT NULL, c_phone STRING(15) NOT NULL, " +
	"c_acctbal NUMERIC NOT NULL, c_mktsegment STRING(10) NOT NULL, c_comment STRING(117) NOT NULL"

// BenchmarkCustomer reads TPC-H's table customer from a file of each format with one reader. One operation of the
// benchmark reads one row.
func BenchmarkCustomer(b *testing.B) {
	const rows = tpch.CustomersPerScale
	dir := b.TempDir()
	tbl := filepath.Join(dir, "customer.tbl")
	var text []byte
	for c := range tpch.Customers(0, rows) {
		text = c.AppendText(text)
	}
	if err := os.WriteFile(tbl, text, 0o600); err != nil {
		b.Fatal(err)
	}
	schema := schemaOf(b, customerColumns, arrowtype.Nanoseconds)
	for _, format := range Formats {
		name := filepath.Join(dir, "customer."+string(format))
		if format != TBL {
			convert(b, tbl, name, format, schema)
		}
		b.Run(string(format), func(b *testing.B) {
			b.ReportAllocs()
			for read := 0; read < b.N; {
				source, err := Open([]string{name}, Options{Schema: schema})
				if err != nil {
					b.Fatal(err)
				}
				err = bulk.Each(b.Context(), source, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
					read += int(batch.NumRows())
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// convert copies the rows of a file to a file of another format.
func convert(b *testing.B, from, to string, format Format, schema *arrow.Schema) {
	b.Helper()
	source, err := Open([]string{from}, Options{Schema: schema})
	if err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	w, err := NewWriter(out, format, schema)
	if err != nil {
		b.Fatal(err)
	}
	if err = bulk.Each(b.Context(), source, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error { return w.Write(batch) }); err == nil {
		err = w.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
}
