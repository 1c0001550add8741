package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
)

const (
	restartWorkers = 32
	// restartKills is how often the server is killed. The environment variable restartKillsName sets another number.
	restartKills     = 2
	restartKillsName = "CROWFOOT_TEST_KILLS"
	// commitsBetweenKills is how many transactions each worker commits between two kills.
	commitsBetweenKills = 3
)

// counter is a worker with a client of its own. Each of its transactions reads the number in the worker's row and adds
// one to it. The number that a transaction reads must be the number of the worker's acknowledged commits.
type counter struct {
	client *spanner.Client
	id     int64
	acked  atomic.Int64
}

// TestKillWithClients checks that clients notice nothing when the server is killed with SIGKILL and started again on
// the same port. While 32 clients commit, every client must continue with its session and without an error. Every
// acknowledged transaction must have taken effect exactly once.
func TestKillWithClients(t *testing.T) {
	dir := t.TempDir()
	ddl := writeFile(t, "schema.sql", "CREATE TABLE Counters (Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id);\n"+
		"CREATE TABLE Log (Id INT64 NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id, N)")
	args := []string{"--data", filepath.Join(dir, "data"), "--database", crashDatabase, "--ddl", ddl}
	cmd, address := startServer(t, args...)
	args = append(args[:len(args)-2:len(args)-2], "--grpc", address)

	ctx, cancel := context.WithCancel(t.Context())
	counters := newCounters(t, address)
	var running sync.WaitGroup
	for _, c := range counters {
		running.Go(func() { c.run(ctx, t) })
	}
	for range environmentInt(t, restartKillsName, restartKills) {
		awaitCommits(t, counters, commitsBetweenKills)
		cmd.Process.Kill()
		cmd.Wait()
		began := time.Now()
		cmd, _ = startServer(t, args...)
		ready := time.Since(began)
		awaitCommits(t, counters, 1)
		t.Logf("ready after %.1f s, all clients have committed after %.1f s", ready.Seconds(), time.Since(began).Seconds())
	}
	cancel()
	running.Wait()
	for _, c := range counters {
		c.check(t)
	}
}

func newCounters(t *testing.T, address string) []*counter {
	t.Helper()
	counters := make([]*counter, restartWorkers)
	for i := range counters {
		c := &counter{client: connect(t, address), id: int64(i)}
		t.Cleanup(c.client.Close)
		if _, err := c.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Counters", []string{"Id", "N"}, []any{c.id, 0})}); err != nil {
			t.Fatal(err)
		}
		counters[i] = c
	}
	return counters
}

// awaitCommits waits until every worker has committed a given number of further transactions.
func awaitCommits(t *testing.T, counters []*counter, more int64) {
	t.Helper()
	for _, c := range counters {
		for want := c.acked.Load() + more; c.acked.Load() < want; {
			if t.Failed() {
				t.FailNow()
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// run commits transactions until ctx ends. If ctx ends during a commit, the worker does not learn whether this last
// transaction was committed.
func (c *counter) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		if _, err := c.client.ReadWriteTransaction(ctx, c.add); err != nil {
			if ctx.Err() == nil {
				t.Errorf("client %d, after %d commits: %v", c.id, c.acked.Load(), err)
			}
			return
		}
		c.acked.Add(1)
	}
}

// add adds one to the number in the worker's row and inserts a row into the table Log, alternately by DML and by
// mutations.
func (c *counter) add(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
	row, err := tx.ReadRow(ctx, "Counters", spanner.Key{c.id}, []string{"N"})
	if err != nil {
		return err
	}
	var n int64
	if err := row.Column(0, &n); err != nil {
		return err
	}
	if want := c.acked.Load(); n != want {
		return fmt.Errorf("the counter is %d, %d commits were acknowledged", n, want)
	}
	n++
	if n%2 == 0 {
		return tx.BufferWrite([]*spanner.Mutation{
			spanner.Update("Counters", []string{"Id", "N"}, []any{c.id, n}),
			spanner.Insert("Log", []string{"Id", "N"}, []any{c.id, n}),
		})
	}
	params := map[string]any{"id": c.id, "n": n}
	_, err = tx.BatchUpdate(ctx, []spanner.Statement{
		{SQL: "UPDATE Counters SET N = @n WHERE Id = @id", Params: params},
		{SQL: "INSERT INTO Log (Id, N) VALUES (@id, @n)", Params: params},
	})
	return err
}

// check compares the worker's rows with its acknowledged commits. One more transaction may have been committed, whose
// outcome the worker did not learn.
func (c *counter) check(t *testing.T) {
	t.Helper()
	var n, rows, last int64
	query := spanner.Statement{
		SQL:    "SELECT N, (SELECT COUNT(*) FROM Log WHERE Id = @id), (SELECT MAX(N) FROM Log WHERE Id = @id) FROM Counters WHERE Id = @id",
		Params: map[string]any{"id": c.id},
	}
	err := c.client.Single().Query(t.Context(), query).Do(func(r *spanner.Row) error { return r.Columns(&n, &rows, &last) })
	if err != nil {
		t.Fatal(err)
	}
	acked := c.acked.Load()
	if n != rows || n != last || n != acked && n != acked+1 {
		t.Errorf("client %d: counter %d, %d rows up to %d, %d commits acknowledged", c.id, n, rows, last, acked)
	}
}
