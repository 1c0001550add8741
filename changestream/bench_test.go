package changestream

import (
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// discard is a batch that keeps nothing.
type discard struct{ kv.Batch }

func (discard) Put(_, _ []byte) error { return nil }

// BenchmarkCapture captures the inserts of a commit of 200 rows of about 600 bytes, and makes the records of the
// commit. One operation of the benchmark is one row.
func BenchmarkCapture(b *testing.B) {
	c := catalog(b, `CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200), Picture BYTES(MAX), Processed BOOL,
		LastUpdated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)`, "CREATE CHANGE STREAM S FOR ALL")
	const rows = 200
	w, l := write(b, c, "Singers"), logOf(c)
	layout := table.TableLayout(w.table)
	picture := make([]byte, 512)
	for i := range picture {
		picture[i] = byte(rand.Uint32())
	}
	row := []value.Value{num(0), text("Firstname12="), text("Lastname123="), value.OfBytes(picture), value.OfBool(false), value.PendingCommitTimestamp()}
	change := table.Change{Table: w.table, Watches: w.watches, Op: table.Insert, New: row, Written: []bool{true, true, true, true, true, true}}
	b.ReportAllocs()
	for n := 0; n < b.N; n += rows {
		var changes Changes
		var enc Encoder
		for i := range rows {
			row[0] = num(n + i)
			change.Key = layout.AppendKey(change.Key[:0], row[:1])
			for _, watch := range w.watches {
				if m, ok := enc.Encode(&change, watch, &w.tx); ok {
					changes.Add(m)
				}
			}
		}
		if _, err := changes.Append(discard{}, l, 5, &w.tx); err != nil {
			b.Fatal(err)
		}
	}
}
