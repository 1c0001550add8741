package database

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// BenchmarkCreateIndex builds an index on a table of 200,000 rows of 1 kB. Each row has ten columns with different
// strings of 100 characters. The key of the index is one of these columns.
func BenchmarkCreateIndex(b *testing.B) {
	const rows, chunk = 200_000, 2000
	b.Chdir(b.TempDir())
	one := open(b, vfs.Default)
	columns := make([]string, 10)
	for i := range columns {
		columns[i] = fmt.Sprintf("F%d STRING(100)", i)
	}
	db, err := one.CreateDatabase(b.Context(), testName, []string{"CREATE TABLE T (K INT64, " + strings.Join(columns, ", ") + ") PRIMARY KEY (K)"})
	if err != nil {
		b.Fatal(err)
	}
	one.db = db
	t := db.Catalog().Table("T")
	for from := range rows / chunk {
		m := table.Mutation{Op: table.Insert, Table: t, Columns: t.Columns}
		for k := range chunk {
			row := []value.Value{value.OfInt64(int64(from*chunk + k))}
			for f := range columns {
				row = append(row, value.OfString(fmt.Sprintf("%0100d", (from*chunk+k)*(7919+f)%1000003)))
			}
			m.Rows = append(m.Rows, row)
		}
		_, err := db.Transactions().Begin(txn.Options{}).Commit(b.Context(), func(w table.Writer) error {
			_, err := table.Apply(b.Context(), w, table.NewDescriptors(db.Catalog()), []table.Mutation{m}, time.Now())
			return err
		}, txn.CommitOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		one.alter("CREATE INDEX ByF0 ON T(F0)", "DROP INDEX ByF0")
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}
