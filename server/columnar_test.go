package server

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// copied waits until all rows of a table are in its columnar copy.
func (h *harness) copied(name string) {
	h.Helper()
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	of := db.Catalog().Table(name)
	p, err := columnar.Columns(of, nil)
	h.ok(err)
	space, _ := p.Space()
	eventually(func() bool {
		read := columnar.Read{Projection: p, Spans: []table.Span{space}, At: mvcc.TimestampOf(time.Now().Add(time.Hour))}
		e := db.Copies().Of(of.ID).Estimate(read)
		return e.Chunks > 0 && len(e.Rest) == 0
	})
}

// TestColumnar checks that queries read a columnar copy together with the changes made after it. At a timestamp before
// these changes, or before the copy was made, queries must return the rows of that timestamp. The statistics of a plan
// must show whether the query has read the copy.
func TestColumnar(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	const rows = 3000
	h.dmlOnce(ses, fmt.Sprintf("INSERT INTO Singers (SingerId, Name) SELECT n, CONCAT('name ', CAST(n AS STRING)) FROM UNNEST(GENERATE_ARRAY(1, %d)) n", rows))
	before := h.begin(ses, readOnly())
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	h.ok(db.UpdateSchema(h.ctx, []string{"ALTER TABLE Singers SET OPTIONS (columnar_policy = 'enabled')"}, nil))
	h.copied("Singers")
	copied := h.begin(ses, readOnly())
	h.dmlOnce(ses, "UPDATE Singers SET Name = 'changed' WHERE SingerId = 2")
	h.dmlOnce(ses, "DELETE FROM Singers WHERE SingerId > 2990")
	h.dmlOnce(ses, "INSERT INTO Singers (SingerId, Name) VALUES (-7, 'new'), (9000, NULL)")
	const sql = "SELECT COUNT(*), SUM(SingerId), COUNTIF(Name = 'changed'), COUNT(Name) FROM Singers"
	for name, q := range map[string]struct {
		in     *spannerpb.TransactionSelector
		hint   string
		want   string
		chunks bool
	}{
		"now":     {nil, "", "[2992 4480538 1 2991]", true},
		"copied":  {byID(copied), "", "[3000 4501500 0 3000]", true},
		"before":  {byID(before), "", "[3000 4501500 0 3000]", false},
		"refused": {nil, "@{SCAN_METHOD=NO_COLUMNAR}", "[2992 4480538 1 2991]", false},
		"hinted":  {nil, "@{scan_method=columnar}", "[2992 4480538 1 2991]", true},
	} {
		r, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: q.in, Sql: q.hint + sql, QueryMode: spannerpb.ExecuteSqlRequest_PROFILE})
		h.ok(err)
		var values []string
		for _, v := range r.Rows[0].Values {
			values = append(values, v.GetStringValue())
		}
		if got := fmt.Sprint(values); got != q.want {
			t.Errorf("%s: %s, want %s", name, got, q.want)
		}
		chunks, scanned := "", ""
		for _, n := range r.Stats.QueryPlan.PlanNodes {
			fields := n.ExecutionStats.GetFields()
			if c := fields["columnar_chunks"]; c != nil {
				chunks = c.GetStructValue().Fields["total"].GetStringValue()
			}
			if c := fields["scanned_rows"]; c != nil {
				scanned = c.GetStructValue().Fields["total"].GetStringValue()
			}
		}
		if (chunks == "1") != q.chunks || scanned != strings.Fields(q.want[1:])[0] {
			t.Errorf("%s: %q chunks, %s rows scanned", name, chunks, scanned)
		}
	}
}

// TestFlightColumnar checks that a Flight query returns the same columns from a columnar copy as from rows. It compares
// columns of every type, with timestamps in microseconds and in nanoseconds, with changes made after the copy, and for
// some of the keys.
func TestFlightColumnar(t *testing.T) {
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, everyType)
	ses := h.session(true)
	h.dmlOnce(ses, `INSERT INTO Every (Id, Flag, Single, Double, Price, Name, Data, Day, Stamp, Doc, Uid, Tags, Days)
		SELECT n, IF(MOD(n, 3) = 0, NULL, MOD(n, 2) = 0), CAST(n AS FLOAT32), n / 7, n, CONCAT('name ', CAST(n AS STRING)), IF(MOD(n, 5) = 0, NULL, b'\x00\xff'), DATE_FROM_UNIX_DATE(n),
		TIMESTAMP_MICROS(n * 1000003), JSON '{"a": 1}', CAST(FORMAT('00112233-4455-6677-8899-%012d', n) AS UUID), ['x', NULL], IF(MOD(n, 2) = 0, NULL, [DATE '0001-01-01'])
		FROM UNNEST(GENERATE_ARRAY(1, 3000)) n`)
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	h.ok(db.UpdateSchema(h.ctx, []string{"ALTER TABLE Every SET OPTIONS (columnar_policy = 'enabled')"}, nil))
	h.copied("Every")
	h.dmlOnce(ses, "UPDATE Every SET Name = 'changed', Tags = [], Stamp = NULL WHERE Id = 2")
	h.dmlOnce(ses, "DELETE FROM Every WHERE Id > 2990")
	h.dmlOnce(ses, "INSERT INTO Every (Id, Stamp) VALUES (-7, '0001-01-01T00:00:00Z')")
	columnar, rows := "@{SCAN_METHOD=COLUMNAR}", "@{SCAN_METHOD=NO_COLUMNAR}"
	f := h.newFlightClient("timestamp-unit", "us", "max-partitions", "1")
	for _, sql := range []string{
		"SELECT * FROM Every", "SELECT Upper, Id FROM Every", "SELECT * FROM Every WHERE Id BETWEEN 100 AND 2995", "SELECT * FROM Every WHERE Id IN (-7, 2, 5, 2999)",
		"SELECT Name, Days FROM Every WHERE MOD(Id, 3) = 1", "SELECT Id + 1 AS Next, Stamp FROM Every WHERE Name != 'changed'", "SELECT Id, Name FROM Every LIMIT 7",
	} {
		got, err := f.rows(columnar + sql)
		h.ok(err)
		want, err := f.rows(rows + sql)
		h.ok(err)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %d rows, want %d\n%v\n%v", sql, len(got), len(want), got[:min(len(got), 3)], want[:min(len(want), 3)])
		}
	}
	_, err = h.newFlightClient().rows(columnar + "SELECT * FROM Every")
	if h.fails(err, codes.OutOfRange); !strings.Contains(err.Error(), "timestamp-unit") {
		t.Error(err)
	}
	got, err := h.newFlightClient().rows(columnar + "SELECT Stamp FROM Every WHERE Id > 0")
	if h.ok(err); len(got) != 2990 || got[0] != "1970-01-01T00:00:01.000003Z" || got[1] != "NULL" {
		t.Errorf("%d rows, %v", len(got), got[:3])
	}
	read := &spannerpb.ReadRequest{Session: ses, Table: "Every", Columns: []string{"Name", "Id"}, KeySet: allKeys()}
	got, err = f.request(read)
	h.ok(err)
	want, err := f.rows("SELECT Name, Id FROM Every")
	if h.ok(err); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("read: %d rows, want %d", len(got), len(want))
	}
	in := byID(h.begin(ses, readOnly()))
	divided := &spannerpb.PartitionQueryRequest{Session: ses, Transaction: in, Sql: columnar + "SELECT Name, Id FROM Every", PartitionOptions: &spannerpb.PartitionOptions{MaxPartitions: 2}}
	parts, err := h.data.PartitionQuery(h.ctx, divided)
	h.ok(err)
	got = nil
	for _, p := range parts.Partitions {
		part, err := f.request(&spannerpb.ExecuteSqlRequest{Session: ses, Transaction: in, Sql: divided.Sql, PartitionToken: p.PartitionToken})
		h.ok(err)
		got = append(got, part...)
	}
	slices.Sort(got)
	if slices.Sort(want); len(parts.Partitions) != 2 || !slices.Equal(got, want) {
		t.Errorf("%d partitions: %d rows, want %d", len(parts.Partitions), len(got), len(want))
	}
}
