package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
)

// TestKillColumnarUpkeep checks that columnar copies stay right when the server is killed with SIGKILL, again and
// again, while it creates and maintains copies and clients commit. After each kill, crowfoot check must find no fault
// in the data and the copies, and the restarted server must read the same from the copies as from the rows.
// CROWFOOT_TEST_KILLS sets a larger number of kills.
func TestKillColumnarUpkeep(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	ddl := writeFile(t, "schema.sql", "CREATE TABLE T (K INT64 NOT NULL, N INT64, S STRING(MAX)) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled');\nCREATE INDEX ByN ON T(N)")
	args := []string{"--data", data, "--database", crashDatabase, "--ddl", ddl}
	server, address := startServer(t, args...)
	args = append(args[:len(args)-2:len(args)-2], "--grpc", address)
	client := connect(t, address)
	t.Cleanup(client.Close)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range uint64(2) {
		running.Go(func() { writeRuns(ctx, t, client, rand.New(rand.NewPCG(i, 0))) })
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range environmentInt(t, restartKillsName, restartKills) {
		for chunks := int64(0); chunks < 2; { // until both copies, of the table and of the index, have rows
			chunks = numberOf(t, client, "SELECT COUNT(*) FROM SPANNER_SYS.COLUMNAR_POLICIES WHERE CHUNKS > 0 AND COPIED_ROWS > 0")
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond) // so that the kill comes at a random moment
		}
		server.Process.Kill()
		server.Wait()
		checkDirectory(t, data, 0, "crowfoot: the data is sound")
		server, _ = startServer(t, args...)
		compareScans(t, client)
	}
	cancel()
	running.Wait()
}

// writeRuns commits writes or deletions of consecutive rows until ctx ends.
func writeRuns(ctx context.Context, t *testing.T, client *spanner.Client, rnd *rand.Rand) {
	for ctx.Err() == nil {
		var list []*spanner.Mutation
		for k, n := rnd.Int64N(50_000), rnd.Int64(); len(list) < 500; k++ {
			list = append(list, spanner.InsertOrUpdate("T", []string{"K", "N", "S"}, []any{k, n, fmt.Sprint("row ", n)}))
		}
		if rnd.IntN(4) == 0 {
			from := rnd.Int64N(50_000)
			list = []*spanner.Mutation{spanner.Delete("T", spanner.KeyRange{Start: spanner.Key{from}, End: spanner.Key{from + 400}})}
		}
		if _, err := client.Apply(ctx, list); err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

// compareScans checks that scans of the columnar copies return the same as scans of the rows, at one timestamp.
func compareScans(t *testing.T, client *spanner.Client) {
	t.Helper()
	tx := client.ReadOnlyTransaction()
	defer tx.Close()
	for _, from := range []string{"T", "T@{FORCE_INDEX=ByN}"} {
		var sums [2]string
		for i, method := range []string{"columnar", "row"} {
			sql := "@{scan_method=" + method + "} SELECT FORMAT('%d %d %d', COUNT(*), SUM(MOD(N, 1000)), SUM(K)) FROM " + from
			err := tx.Query(t.Context(), spanner.Statement{SQL: sql}).Do(func(r *spanner.Row) error { return r.Columns(&sums[i]) })
			if err != nil {
				t.Fatal(err)
			}
		}
		if sums[0] != sums[1] {
			t.Errorf("%s: the copy has %s, the rows are %s", from, sums[0], sums[1])
		}
	}
}

// numberOf returns the number that is the only value of a query's result.
func numberOf(t *testing.T, client *spanner.Client, sql string) (n int64) {
	t.Helper()
	if err := client.Single().Query(t.Context(), spanner.Statement{SQL: sql}).Do(func(r *spanner.Row) error { return r.Columns(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}
