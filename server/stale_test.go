package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
)

// An official is the official client, connected to a server whose store survives restarts.
type official struct {
	*testing.T
	ctx    context.Context
	clock  *testClock
	fs     vfs.FS
	client *spanner.Client
	admin  *admin.DatabaseAdminClient
	stop   func()
}

func newOfficial(t *testing.T, schema ...string) *official {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o := &official{T: t, ctx: ctx, clock: newTestClock(), fs: vfs.NewMem()}
	o.start(func(r *database.Registry) error {
		if _, err := r.CreateInstance(database.Instance{Name: testInstance}); err != nil {
			return err
		}
		_, err := r.CreateDatabase(ctx, testDatabase, schema)
		return err
	})
	t.Cleanup(func() { o.stop() })
	return o
}

func (o *official) start(prepare func(*database.Registry) error) {
	o.Helper()
	store, err := pebble.Open("data", o.fs)
	o.ok(err)
	log := slog.New(slog.DiscardHandler)
	registry, err := database.Open(store, database.Config{Clock: o.clock.now, Log: log})
	o.ok(err)
	o.ok(prepare(registry))
	listener := listen(o)
	s, err := Serve(registry, listener, listen(o), Config{Clock: o.clock.now, Log: log})
	o.ok(err)
	options := []option.ClientOption{
		option.WithEndpoint("passthrough:///" + listener.Addr().String()),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
	o.client, err = spanner.NewClientWithConfig(o.ctx, testDatabase, spanner.ClientConfig{DisableNativeMetrics: true}, options...)
	o.ok(err)
	o.admin, err = admin.NewDatabaseAdminClient(o.ctx, options...)
	o.ok(err)
	o.stop = func() {
		o.client.Close()
		o.ok(errors.Join(o.admin.Close(), s.Close(), registry.Close(), store.Close()))
	}
}

func (o *official) restart() {
	o.Helper()
	o.stop()
	o.start(func(*database.Registry) error { return nil })
}

func (o *official) ok(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

// alter runs DDL statements in one UpdateDatabaseDdl, and returns their commit timestamps.
func (o *official) alter(statements ...string) (at []time.Time) {
	o.Helper()
	op, err := o.admin.UpdateDatabaseDdl(o.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, Statements: statements})
	o.ok(err)
	o.ok(op.Wait(o.ctx))
	metadata, err := op.Metadata()
	o.ok(err)
	for _, commit := range metadata.CommitTimestamps {
		at = append(at, commit.AsTime())
	}
	return at
}

func (o *official) insert(tableName string, columns []string, values ...any) time.Time {
	o.Helper()
	at, err := o.client.Apply(o.ctx, []*spanner.Mutation{spanner.Insert(tableName, columns, values)})
	o.ok(err)
	return at
}

// reader is the common interface of the client's read-only transactions.
type reader interface {
	Query(context.Context, spanner.Statement) *spanner.RowIterator
	ReadWithOptions(context.Context, string, spanner.KeySet, []string, *spanner.ReadOptions) *spanner.RowIterator
}

// rows formats the rows of a result with their columns. If the read failed, it returns the code and the text of the
// error.
func rows(it *spanner.RowIterator) string {
	defer it.Stop()
	var out strings.Builder
	for {
		row, err := it.Next()
		if err == iterator.Done {
			return out.String()
		}
		if err != nil {
			return fmt.Sprint(spanner.ErrCode(err), ": ", spanner.ErrDesc(err))
		}
		for i, name := range row.ColumnNames() {
			var v spanner.GenericColumnValue
			if err := row.Column(i, &v); err != nil {
				return err.Error()
			}
			fmt.Fprintf(&out, "%s=%v ", name, v.Value.AsInterface())
		}
		out.WriteByte('\n')
	}
}

// want runs a query, or reads a whole table or index ("TABLE[@INDEX](COLUMN,...)"), and checks that the result is the
// parameter want. If want ends in "...", the result need only begin with the text before it.
func (o *official) want(tx reader, what, want string) {
	o.Helper()
	got := o.get(tx, what)
	if strings.HasPrefix(want, codes.InvalidArgument.String()) {
		got, _, _ = strings.Cut(got, "\n") // an error about a statement has further lines, which quote it
	}
	if got != want && !(strings.HasSuffix(want, "...") && strings.HasPrefix(got, strings.TrimSuffix(want, "..."))) {
		o.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}

func (o *official) get(tx reader, what string) string {
	if strings.HasPrefix(what, "SELECT") {
		return rows(tx.Query(o.ctx, spanner.NewStatement(what)))
	}
	name, columns, _ := strings.Cut(strings.TrimSuffix(what, ")"), "(")
	name, index, _ := strings.Cut(name, "@")
	return rows(tx.ReadWithOptions(o.ctx, name, spanner.AllKeys(), strings.Split(columns, ","), &spanner.ReadOptions{Index: index}))
}

func (o *official) at(at time.Time) reader {
	return o.client.Single().WithTimestampBound(spanner.ReadTimestamp(at))
}

// notThen returns the end of the error text of a read at a past timestamp, if the read names an object that exists now
// but did not exist at that timestamp.
func notThen(at time.Time) string { return " at timestamp " + at.UTC().Format(time.RFC3339Nano) }

var firstSchema = []string{"CREATE TABLE A (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX ByV ON A(V)"}

// TestSchemaOfTheTime: READ and SQL at a timestamp use the schema that was valid at that timestamp.
func TestSchemaOfTheTime(t *testing.T) {
	o := newOfficial(t, firstSchema...)
	o.insert("A", []string{"K", "V"}, 1, 10)
	before := o.insert("A", []string{"K", "V"}, 2, 20)
	batch := o.alter("ALTER TABLE A ADD COLUMN nw INT64 NOT NULL DEFAULT (4)", "CREATE TABLE N (k INT64) PRIMARY KEY (k)", "CREATE INDEX ByNw ON A(nw)")
	grown := o.insert("N", []string{"k"}, 7)
	dropped := o.alter("DROP INDEX ByV", "DROP TABLE N", "ALTER TABLE A DROP COLUMN V")

	check := func() {
		t.Helper()
		o.want(o.at(before), "SELECT * FROM A", "K=1 V=10 \nK=2 V=20 \n")
		o.want(o.at(before), "A(K,V)", "K=1 V=10 \nK=2 V=20 \n")
		o.want(o.at(before), "A@ByV(K,V)", "K=1 V=10 \nK=2 V=20 \n")
		o.want(o.at(before), "SELECT nw FROM A", "InvalidArgument: Unrecognized name: nw [at 1:8]"+notThen(before))
		o.want(o.at(before), "A(nw)", "NotFound: Column not found in table A: nw"+notThen(before))
		// These errors do not name the timestamp, because N does not exist now either.
		o.want(o.at(before), "SELECT k FROM N", "InvalidArgument: Table not found: N [at 1:15]")
		o.want(o.at(before), "N(k)", "NotFound: Table not found: N")
		o.want(o.at(before), "A@ByNw(K)", "NotFound: No index ByNw was found for table A"+notThen(before))
		o.want(o.at(before), "SELECT K FROM A@{FORCE_INDEX=ByNw}", "InvalidArgument: ...")
		o.want(o.at(before), "SELECT COUNT(*) AS n FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE FALSE", "n=0 \n")
		o.want(o.at(before), "SELECT COUNT(*) AS n FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME IN ('A', 'N')", "n=1 \n")

		o.want(o.at(batch[0]), "SELECT * FROM A", "K=1 V=10 nw=4 \nK=2 V=20 nw=4 \n")
		o.want(o.at(batch[0].Add(-time.Microsecond)), "SELECT * FROM A", "K=1 V=10 \nK=2 V=20 \n")
		o.want(o.at(batch[0]), "SELECT * FROM N", "InvalidArgument: ...")
		o.want(o.at(batch[1]), "SELECT * FROM N", "")
		o.want(o.at(batch[1]), "A@ByNw(K)", "NotFound: ...")
		o.want(o.at(batch[2]), "A@ByNw(K)", "K=1 \nK=2 \n")
		o.want(o.at(grown), "SELECT a.V, n.k FROM A@{FORCE_INDEX=ByNw} a, N n", "V=10 k=7 \nV=20 k=7 \n")
		o.want(o.at(dropped[0]), "A@ByV(K)", "NotFound: ...")
		o.want(o.at(dropped[0]), "N(k)", "k=7 \n")
		o.want(o.at(dropped[1]), "N(k)", "NotFound: ...")
		o.want(o.at(dropped[1]), "SELECT V FROM A", "V=10 \nV=20 \n")
		o.want(o.at(dropped[2]), "SELECT * FROM A", "K=1 nw=4 \nK=2 nw=4 \n")
	}
	check()
	check() // a second time, with plans from the cache
	o.restart()
	check()
}

// TestSchemaOfATransaction: all reads of a read-only transaction, with or without partitions, use the schema with which
// it began.
func TestSchemaOfATransaction(t *testing.T) {
	o := newOfficial(t, firstSchema...)
	o.insert("A", []string{"K", "V"}, 1, 10)
	begun := o.client.ReadOnlyTransaction()
	defer begun.Close()
	o.want(begun, "SELECT * FROM A", "K=1 V=10 \n")
	batch, err := o.client.BatchReadOnlyTransaction(o.ctx, spanner.StrongRead())
	o.ok(err)
	defer batch.Close()
	reads, err := batch.PartitionRead(o.ctx, "A", spanner.AllKeys(), []string{"K", "V"}, spanner.PartitionOptions{})
	o.ok(err)

	o.alter("DROP INDEX ByV", "ALTER TABLE A DROP COLUMN V", "ALTER TABLE A ADD COLUMN nw INT64 NOT NULL DEFAULT (4)", "ALTER TABLE A ADD COLUMN V STRING(10)", "CREATE TABLE N (k INT64) PRIMARY KEY (k)")
	o.insert("A", []string{"K", "V"}, 2, "text")
	o.insert("N", []string{"k"}, 7)

	for _, tx := range []reader{begun, &batch.ReadOnlyTransaction} {
		o.want(tx, "SELECT * FROM A", "K=1 V=10 \n")
		o.want(tx, "SELECT V + 1 AS w FROM A@{FORCE_INDEX=ByV}", "w=11 \n")
		o.want(tx, "A@ByV(V)", "V=10 \n")
		o.want(tx, "A(K,nw)", "NotFound: ...")
		o.want(tx, "SELECT nw FROM A", "InvalidArgument: Unrecognized name: nw [at 1:8] at timestamp ...")
		o.want(tx, "SELECT k FROM N", "InvalidArgument: Table not found: N [at 1:15] at timestamp ...")
		o.want(tx, "N(k)", "NotFound: Table not found: N at timestamp ...")
	}
	queries, err := batch.PartitionQuery(o.ctx, spanner.NewStatement("SELECT K, V + 1 AS V FROM A"), spanner.PartitionOptions{})
	o.ok(err)
	for i, parts := range [][]*spanner.Partition{reads, queries} {
		var got strings.Builder
		for _, p := range parts {
			got.WriteString(rows(batch.Execute(o.ctx, p)))
		}
		if want := fmt.Sprintf("K=1 V=%d \n", 10+i); got.String() != want {
			t.Errorf("the partitions have %s, want %s", got.String(), want)
		}
	}
	_, err = batch.PartitionQuery(o.ctx, spanner.NewStatement("SELECT k FROM N"), spanner.PartitionOptions{})
	o.code(err, codes.InvalidArgument)
	_, err = batch.PartitionRead(o.ctx, "A", spanner.AllKeys(), []string{"nw"}, spanner.PartitionOptions{})
	o.code(err, codes.NotFound)
	o.want(o.client.Single(), "SELECT * FROM A ORDER BY K", "K=1 nw=4 V=<nil> \nK=2 nw=4 V=text \n")
}

func (o *official) code(err error, want codes.Code) {
	o.Helper()
	if spanner.ErrCode(err) != want {
		o.Errorf("got %v, want %v", err, want)
	}
}

// TestBoundsAndSchema: with a timestamp bound that lets the server choose the timestamp, a read uses the schema of the
// chosen timestamp.
func TestBoundsAndSchema(t *testing.T) {
	o := newOfficial(t, firstSchema...)
	single := func(b spanner.TimestampBound) reader { return o.client.Single().WithTimestampBound(b) }
	at := o.alter("CREATE TABLE N (k INT64) PRIMARY KEY (k)")[0]
	for _, b := range []spanner.TimestampBound{
		spanner.StrongRead(), spanner.MinReadTimestamp(at), spanner.MinReadTimestamp(at.Add(-time.Hour)), spanner.MinReadTimestamp(at.Add(-1000 * time.Hour)),
		spanner.MaxStaleness(time.Minute), spanner.MaxStaleness(0), spanner.MaxStaleness(1000 * time.Hour), spanner.ExactStaleness(0), spanner.ReadTimestamp(at),
	} {
		o.want(single(b), "SELECT * FROM N", "")
		o.want(single(b), "N(k)", "")
	}
	// At a timestamp before the creation of the database, reads use the initial schema.
	for _, b := range []spanner.TimestampBound{spanner.ExactStaleness(50 * time.Minute), spanner.ReadTimestamp(at.Add(-50 * time.Minute)), spanner.ReadTimestamp(at.Add(-time.Microsecond))} {
		o.want(single(b), "SELECT * FROM A@{FORCE_INDEX=ByV}", "")
		o.want(single(b), "A@ByV(K)", "")
		o.want(single(b), "SELECT * FROM N", "InvalidArgument: Table not found: N [at 1:15] at timestamp ...")
		o.want(single(b), "N(k)", "NotFound: Table not found: N at timestamp ...")
	}
	for _, b := range []spanner.TimestampBound{spanner.ExactStaleness(61 * time.Minute), spanner.ReadTimestamp(at.Add(-61 * time.Minute)), spanner.ReadTimestamp(time.Unix(0, 0)), spanner.ReadTimestamp(time.Time{})} {
		o.want(single(b), "SELECT * FROM A", "FailedPrecondition: ...")
		o.want(single(b), "A(K)", "FailedPrecondition: ...")
		o.want(single(b), "SELECT 1", "FailedPrecondition: ...")
	}
}

// TestFutureRead: a read at a future timestamp waits until that time, and then sees all commits up to it. If the read's
// deadline comes first, the read fails.
func TestFutureRead(t *testing.T) {
	o := newOfficial(t, firstSchema...)
	soon := o.clock.now().Add(time.Hour)
	got := make(chan string)
	for _, what := range []string{"SELECT * FROM N", "N(k)"} {
		go func() { got <- o.get(o.at(soon), what) }()
	}
	o.alter("CREATE TABLE N (k INT64) PRIMARY KEY (k)")
	o.insert("N", []string{"k"}, 7)
	o.clock.forward(time.Hour)
	for range 2 {
		if rows := <-got; rows != "k=7 \n" {
			t.Errorf("got %s", rows)
		}
	}
	limited, cancel := context.WithTimeout(o.ctx, 50*time.Millisecond)
	defer cancel()
	for _, b := range []spanner.TimestampBound{spanner.ReadTimestamp(o.clock.now().Add(time.Hour)), spanner.MinReadTimestamp(o.clock.now().Add(time.Hour)), spanner.ReadTimestamp(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))} {
		_, err := o.client.Single().WithTimestampBound(b).ReadRow(limited, "A", spanner.Key{1}, []string{"V"})
		o.code(err, codes.DeadlineExceeded)
	}
	o.insert("A", []string{"K", "V"}, 1, 10) // the commit does not wait for the readers
}
