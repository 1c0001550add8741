package database

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// arguments prepares a statement that reads a change stream, and returns the text of its arguments' values.
func (b *bed) arguments(sql string, params map[string]*value.Type, values ...value.Value) string {
	b.t.Helper()
	s, err := b.prepare(sql, params, prepare.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range s.Plan.Params {
		if v, ok := s.Literal(i); ok {
			values = append(values, v)
		}
	}
	snap, err := b.db.Transactions().Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer snap.Close()
	rows, err := s.Run(context.Background(), prepare.Run{View: snap, Params: values}, time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	if ok, err := rows.Next(); !ok || err != nil {
		b.t.Fatal("no arguments: ", err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s by %s:", s.ChangeStream.Name, s.Columns[0].Name)
	for i, v := range rows.Values(nil) {
		fmt.Fprint(&out, " ", tree.FormatLiteral(&tree.Literal{T: s.Plan.Columns[i].Type, Value: v}))
	}
	return out.String()
}

// TestReadChangeStreamStatement checks the values of the arguments that prepared queries of a change stream get. Some
// of the queries differ only in their literals and share one plan, but each must get the values of its own literals.
func TestReadChangeStreamStatement(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)", "CREATE CHANGE STREAM Everything FOR ALL")
	const partition = "SELECT ChangeRecord FROM READ_Everything(start_timestamp => '%s', end_timestamp => NULL, partition_token => '%s', heartbeat_milliseconds => %d)"
	for i := range 6 { // after three texts that differ only in literals, the preparer uses a shared plan if it can
		got := b.arguments(fmt.Sprintf(partition, "2026-01-02T03:04:05Z", fmt.Sprint("token", i), 1000+i), nil)
		want := fmt.Sprintf(`Everything by ChangeRecord: TIMESTAMP 2026-01-02T03:04:05Z NULL:TIMESTAMP "token%d" %d NULL:ARRAY<STRING>`, i, 1000+i)
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// A timestamp without a time zone is in the database's time zone.
	got := b.arguments(fmt.Sprintf(partition, "2026-01-02 03:04:05", "x", 2000), nil)
	if want := `Everything by ChangeRecord: TIMESTAMP 2026-01-02T11:04:05Z NULL:TIMESTAMP "x" 2000 NULL:ARRAY<STRING>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b = create(t, "ALTER DATABASE test SET OPTIONS (default_time_zone = 'Europe/Berlin')", "CREATE CHANGE STREAM Everything FOR ALL")
	got = b.arguments(fmt.Sprintf(partition, "2026-01-02 03:04:05", "x", 2000), nil)
	if want := `Everything by ChangeRecord: TIMESTAMP 2026-01-02T02:04:05Z NULL:TIMESTAMP "x" 2000 NULL:ARRAY<STRING>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	start, _ := value.ParseTimestampZ("2026-01-02T03:04:05Z")
	got = b.arguments("SELECT * FROM READ_Everything(start_timestamp => @s, partition_token => @p, heartbeat_milliseconds => @h)",
		map[string]*value.Type{"s": value.TimestampType, "h": value.Int64Type, "p": nil}, start, value.Null(value.String), value.OfInt64(5000))
	if want := `Everything by ChangeRecord: TIMESTAMP 2026-01-02T03:04:05Z NULL:TIMESTAMP NULL:STRING 5000 NULL:ARRAY<STRING>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
