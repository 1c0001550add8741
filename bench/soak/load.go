package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instances "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

const (
	soakInstance = "projects/p/instances/soak"
	soakDatabase = soakInstance + "/databases/soak"
	soakRows     = 50_000
	soakCounters = 8
	// soakPause is the time between two requests of a worker. Workers pause because a soak does not measure the
	// highest throughput: it looks for memory, goroutines and connections that accumulate over time.
	soakPause = 20 * time.Millisecond
)

var soakDDL = []string{
	"CREATE TABLE Items (Id INT64 NOT NULL, Kind INT64, Text STRING(200), Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)",
	"CREATE INDEX ItemsByKind ON Items(Kind)",
	"CREATE TABLE Counters (Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)",
	"CREATE TABLE Log (Id INT64 NOT NULL, N INT64 NOT NULL, Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id, N)",
}

// soakLoad is a set of clients that send requests while the server is ended and started again.
type soakLoad struct {
	grpc    string
	client  *spanner.Client
	schema  *admin.DatabaseAdminClient
	workers []*soakWorker
	cancel  context.CancelFunc
	running sync.WaitGroup
	counts  [soakCounters]atomic.Int64 // for each counter, the number of commits that the server acknowledged
}

// soakWorker repeats one kind of request.
type soakWorker struct {
	name  string
	pause time.Duration
	do    func(context.Context) error
	// permitted reports whether a client may return this error to its user if the server ends during a request. If
	// permitted is nil, the client may return no error.
	permitted func(error) bool
	done      atomic.Int64
	failed    atomic.Pointer[error]
}

// newSoakLoad creates a database, fills it and starts the workers.
func newSoakLoad(ctx context.Context, address string) (*soakLoad, error) {
	l := &soakLoad{grpc: address}
	if err := l.create(ctx); err != nil {
		return nil, err
	}
	var err error
	if l.client, err = l.connect(ctx); err != nil {
		return nil, err
	}
	if err := l.fill(ctx); err != nil {
		return nil, err
	}
	l.workers = l.kinds()
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, w := range l.workers {
		l.running.Go(func() { w.run(ctx) })
	}
	return l, nil
}

func (l *soakLoad) connect(ctx context.Context) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, soakDatabase, spanner.ClientConfig{DisableNativeMetrics: true}, harness.PlainTextOptions(l.grpc)...)
}

// create creates the instance and the database.
func (l *soakLoad) create(ctx context.Context) (err error) {
	places, err := instances.NewInstanceAdminClient(ctx, harness.PlainTextOptions(l.grpc)...)
	if err != nil {
		return err
	}
	defer places.Close()
	made, err := places.CreateInstance(ctx, &instancepb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "soak", Instance: &instancepb.Instance{
		Config: "projects/p/instanceConfigs/emulator-config", DisplayName: "soak", NodeCount: 1,
	}})
	if err != nil {
		return err
	}
	if _, err := made.Wait(ctx); err != nil {
		return err
	}
	if l.schema, err = admin.NewDatabaseAdminClient(ctx, harness.PlainTextOptions(l.grpc)...); err != nil {
		return err
	}
	op, err := l.schema.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: soakInstance, CreateStatement: "CREATE DATABASE soak", ExtraStatements: soakDDL})
	if err != nil {
		return err
	}
	_, err = op.Wait(ctx)
	return err
}

func (l *soakLoad) fill(ctx context.Context) error {
	const batch = 1000
	for first := 0; first < soakRows; first += batch {
		rows := make([]*spanner.Mutation, batch)
		for i := range rows {
			rows[i] = l.item(int64(first + i))
		}
		if _, err := l.client.Apply(ctx, rows); err != nil {
			return err
		}
	}
	for id := range soakCounters {
		if _, err := l.client.Apply(ctx, []*spanner.Mutation{spanner.Insert("Counters", []string{"Id", "N"}, []any{int64(id), int64(0)})}); err != nil {
			return err
		}
	}
	return nil
}

// item returns a mutation that writes a row with random values.
func (l *soakLoad) item(id int64) *spanner.Mutation {
	return spanner.InsertOrUpdate("Items", []string{"Id", "Kind", "Text", "Changed"},
		[]any{id, rand.Int64N(100), strings.Repeat("x", rand.IntN(200)), spanner.CommitTimestamp})
}

func (l *soakLoad) kinds() []*soakWorker {
	id := func() int64 { return rand.Int64N(soakRows) }
	workers := []*soakWorker{
		{name: "point read", pause: soakPause, do: func(ctx context.Context) error {
			_, err := l.client.Single().ReadRow(ctx, "Items", spanner.Key{id()}, []string{"Kind", "Text"})
			return err
		}},
		{name: "range read", pause: soakPause, do: func(ctx context.Context) error {
			first := id()
			return l.read(l.client.Single().Read(ctx, "Items", spanner.KeyRange{Start: spanner.Key{first}, End: spanner.Key{first + 1000}}, []string{"Id", "Text"}))
		}},
		{name: "query", pause: soakPause, do: func(ctx context.Context) error {
			return l.query(ctx, "SELECT i.Id, i.Text FROM Items i WHERE i.Kind = @k ORDER BY i.Text, i.Id LIMIT 50", "k", rand.Int64N(100))
		}},
		{name: "new text", pause: soakPause, do: func(ctx context.Context) error {
			return l.query(ctx, fmt.Sprintf("SELECT COUNT(*) AS c%d FROM Items i WHERE i.Id < %d", rand.Uint32(), id()%1000))
		}},
		{name: "scan", pause: time.Second, do: func(ctx context.Context) error {
			return l.query(ctx, "SELECT i.Kind, COUNT(*), MAX(i.Changed), SUM(LENGTH(i.Text)) FROM Items i GROUP BY i.Kind ORDER BY 2")
		}},
		{name: "mutation", pause: soakPause, do: func(ctx context.Context) error {
			_, err := l.client.Apply(ctx, []*spanner.Mutation{l.item(id()), l.item(id())})
			return err
		}},
		{name: "DML", pause: soakPause, do: func(ctx context.Context) error {
			_, err := l.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, spanner.Statement{SQL: "UPDATE Items SET Kind = MOD(Kind + 1, 100) WHERE Id = @id", Params: map[string]any{"id": id()}})
				return err
			})
			return err
		}},
		{name: "partitioned DML", pause: 10 * time.Second, do: func(ctx context.Context) error {
			_, err := l.client.PartitionedUpdate(ctx, spanner.NewStatement("UPDATE Items SET Kind = 0 WHERE Id < 500"))
			return err
		}},
		{name: "new client", pause: time.Second, do: l.newClient},
		{name: "DDL", pause: 10 * time.Second, do: l.changeSchema, permitted: func(err error) bool {
			return spanner.ErrCode(err) == codes.Unavailable // the admin client does not retry DDL statements
		}},
	}
	for i := range l.counts {
		workers = append(workers, &soakWorker{name: "counter", pause: soakPause, do: func(ctx context.Context) error { return l.count(ctx, i) }})
	}
	return workers
}

func (l *soakLoad) query(ctx context.Context, sql string, params ...any) error {
	s := spanner.NewStatement(sql)
	for i := 0; i+1 < len(params); i += 2 {
		s.Params[params[i].(string)] = params[i+1]
	}
	return l.read(l.client.Single().Query(ctx, s))
}

func (l *soakLoad) read(it *spanner.RowIterator) error {
	_, err := harness.Drain(it)
	return err
}

// newClient connects a new client, reads one row with it and closes it.
func (l *soakLoad) newClient(ctx context.Context) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Single().ReadRow(ctx, "Items", spanner.Key{int64(0)}, []string{"Id"})
	return err
}

// changeSchema creates an index and drops the index again.
func (l *soakLoad) changeSchema(ctx context.Context) error {
	for _, statement := range []string{"CREATE INDEX IF NOT EXISTS ItemsByText ON Items(Text)", "DROP INDEX IF EXISTS ItemsByText"} {
		op, err := l.schema.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: soakDatabase, Statements: []string{statement}})
		if err != nil {
			return err
		}
		if err := op.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// count adds one to counter i in the database. It checks that the counter equals the number of acknowledged commits.
func (l *soakLoad) count(ctx context.Context, i int) error {
	acknowledged := l.counts[i].Load()
	_, err := l.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		row, err := tx.ReadRow(ctx, "Counters", spanner.Key{int64(i)}, []string{"N"})
		if err != nil {
			return err
		}
		var n int64
		if err := row.Column(0, &n); err != nil {
			return err
		}
		if n != acknowledged {
			return fmt.Errorf("counter %d is %d, and %d commits were acknowledged", i, n, acknowledged)
		}
		return tx.BufferWrite([]*spanner.Mutation{
			spanner.Update("Counters", []string{"Id", "N"}, []any{int64(i), n + 1}),
			spanner.Insert("Log", []string{"Id", "N", "Changed"}, []any{int64(i), n + 1, spanner.CommitTimestamp}),
		})
	})
	if err == nil {
		l.counts[i].Add(1)
	}
	return err
}

// run repeats the worker's request until ctx ends, or until the client returns an error that is not permitted.
func (w *soakWorker) run(ctx context.Context) {
	tick := time.NewTicker(w.pause)
	defer tick.Stop()
	for {
		if err := w.do(ctx); err == nil {
			w.done.Add(1)
		} else if ctx.Err() == nil && (w.permitted == nil || !w.permitted(err)) {
			err = fmt.Errorf("%s, after %d: %w", w.name, w.done.Load(), err)
			w.failed.Store(&err)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// soakStall is the longest time that a worker's request may take after the server has been started again. A slower
// request counts as hanging.
const soakStall = 2 * time.Minute

// recover waits until the workers have got an answer from the restarted server. It does not wait for workers with a
// longer pause than soakPause, because their next request may be seconds away.
func (l *soakLoad) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, soakStall, fmt.Errorf("a worker had no answer for %v", soakStall))
	defer cancel()
	for _, w := range l.workers {
		for done := w.done.Load(); w.pause == soakPause && w.done.Load() == done; {
			if err := l.failed(); err != nil {
				return err
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", w.name, context.Cause(ctx))
			}
		}
	}
	return nil
}

// failed returns the errors of the workers that have ended, joined.
func (l *soakLoad) failed() error {
	var errs []error
	for _, w := range l.workers {
		if err := w.failed.Load(); err != nil {
			errs = append(errs, *err)
		}
	}
	return errors.Join(errs...)
}

// line summarizes the work so far.
func (l *soakLoad) line() string {
	var requests, commits int64
	for _, w := range l.workers {
		requests += w.done.Load()
	}
	for i := range l.counts {
		commits += l.counts[i].Load()
	}
	return fmt.Sprintf("%d requests, %d counted commits", requests, commits)
}

// end stops the workers and compares the counters with the acknowledged commits.
func (l *soakLoad) end(ctx context.Context) error {
	broken := []error{l.failed()}
	l.cancel()
	l.running.Wait()
	defer l.client.Close()
	defer l.schema.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range l.counts {
		var n, rows, last int64
		err := l.client.Single().Query(ctx, spanner.Statement{
			SQL:    "SELECT c.N, (SELECT COUNT(*) FROM Log WHERE Id = c.Id), (SELECT IFNULL(MAX(N), 0) FROM Log WHERE Id = c.Id) FROM Counters c WHERE c.Id = @id",
			Params: map[string]any{"id": int64(i)},
		}).Do(func(r *spanner.Row) error { return r.Columns(&n, &rows, &last) })
		// The server may have made one more commit than it has acknowledged, because l.cancel can end a request before
		// the answer comes.
		if told := l.counts[i].Load(); err == nil && (n != rows || n != last || n != told && n != told+1) {
			err = fmt.Errorf("counter %d is %d, with %d rows up to %d; %d commits were acknowledged", i, n, rows, last, told)
		}
		broken = append(broken, err)
	}
	return errors.Join(broken...)
}
