// Package bench re-runs published comparisons of access paths with the official
// Go client against a server in a process of its own.
//
// A benchmark sets things side by side in one run and prints ratios. What is
// compared alternates in rounds, A B A B, so that a noisy machine is fair to both.
//
// Imports of this module: nothing.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/iterator"
)

// Points says how large a run of the points benchmark is.
type Points struct {
	Rows    int           // of 1 kB each
	Seconds time.Duration // of each measure at each number of clients, in all rounds together
	Clients []int
	Dir     string // where the data goes; "" is a temporary directory
	Out     io.Writer
}

// rounds is how often the paths that are compared take turns.
const rounds = 3

const (
	databaseName = "projects/bench/instances/bench/databases/points"
	tableName    = "Points"
)

// columns of the points table: an id and ten strings of fieldLength.
var columns = []string{"Id", "F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"}

const fieldLength = 100

func schemaDDL() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + tableName + " (Id INT64 NOT NULL")
	for _, c := range columns[1:] {
		fmt.Fprintf(&b, ", %s STRING(%d)", c, fieldLength)
	}
	b.WriteString(") PRIMARY KEY (Id)")
	return b.String()
}

// field is the value of one column of a row: fieldLength characters that do not compress to nothing.
func field(id int64, column string) string {
	r := rand.New(rand.NewPCG(uint64(id), uint64(column[len(column)-1])))
	b := make([]byte, fieldLength)
	for i := range b {
		b[i] = 'a' + byte(r.UintN(26))
	}
	return string(b)
}

func row(id int64) *spanner.Mutation {
	values := make([]any, len(columns))
	values[0] = id
	for i, c := range columns[1:] {
		values[i+1] = field(id, c)
	}
	return spanner.InsertOrUpdate(tableName, columns, values)
}

// Run loads the table, measures and prints.
func (b Points) Run(ctx context.Context) (err error) {
	if b.Dir == "" {
		if b.Dir, err = os.MkdirTemp("", "crowfoot-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	}
	data := filepath.Join(b.Dir, "data")
	ddl := filepath.Join(b.Dir, "points.sql")
	if err := os.WriteFile(ddl, []byte(schemaDDL()), 0o600); err != nil {
		return err
	}
	server, err := spawn(ctx, "start", "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--database", databaseName, "--ddl", ddl)
	if err != nil {
		return err
	}
	defer func() { server.stop() }()
	client, err := connect(ctx, server.grpc)
	if err != nil {
		return err
	}
	b.heading()
	if err := b.load(ctx, server, client); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := b.reads(ctx, server, client); err != nil {
		return fmt.Errorf("reads: %w", err)
	}
	if err := b.commits(ctx, server, client); err != nil {
		return fmt.Errorf("commits: %w", err)
	}
	client.Close()
	server, err = b.restart(ctx, server, data)
	return err
}

// connect makes an official client for an address.
func connect(ctx context.Context, address string) (*spanner.Client, error) {
	if err := os.Setenv("SPANNER_EMULATOR_HOST", address); err != nil {
		return nil, err
	}
	return spanner.NewClientWithConfig(ctx, databaseName, spanner.ClientConfig{DisableNativeMetrics: true})
}

// Loading sends this many rows in a commit, from this many clients.
const (
	loadBatch   = 1000
	loadClients = 4
)

// idleAfterLoad is how long the server gets to finish flushes and compactions before its memory is read.
const idleAfterLoad = 10 * time.Second

func (b Points) load(ctx context.Context, server *process, client *spanner.Client) error {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loadClients)
	for first := 0; first < b.Rows; first += loadBatch {
		g.Go(func() error {
			var rows []*spanner.Mutation
			for id := first; id < min(first+loadBatch, b.Rows); id++ {
				rows = append(rows, row(int64(id)))
			}
			_, err := client.Apply(ctx, rows)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(b.Out, "loaded %d rows of 1 kB in %.1f s (%.0f rows/s)\n", b.Rows, took.Seconds(), float64(b.Rows)/took.Seconds())
	time.Sleep(idleAfterLoad)
	memory, err := server.resident()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "resident after load, idle: %d MiB (target <= 700 at 1,000,000 rows)\n", memory>>20)
	return nil
}

func readOperation(client *spanner.Client, rows int) operation {
	return func(ctx context.Context, r *rand.Rand) error {
		_, err := client.Single().ReadRow(ctx, tableName, spanner.Key{r.Int64N(int64(rows))}, columns)
		return err
	}
}

func sqlOperation(client *spanner.Client, rows int) operation {
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM " + tableName + " WHERE Id = @id"
	return func(ctx context.Context, r *rand.Rand) error {
		it := client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"id": r.Int64N(int64(rows))}})
		defer it.Stop()
		if _, err := it.Next(); err != nil {
			return err
		}
		if _, err := it.Next(); err != iterator.Done {
			return fmt.Errorf("more than one row: %v", err)
		}
		return nil
	}
}

// reads compares READ and SQL with the ceiling of each.
func (b Points) reads(ctx context.Context, server *process, client *spanner.Client) error {
	top, err := spawn(ctx, "bench", "ceiling")
	if err != nil {
		return err
	}
	defer top.stop()
	topClient, err := connect(ctx, top.grpc)
	if err != nil {
		return err
	}
	defer topClient.Close()
	paths := []struct {
		name string
		on   *process
		op   operation
	}{
		{"ceiling READ", top, readOperation(topClient, b.Rows)},
		{"READ", server, readOperation(client, b.Rows)},
		{"ceiling SQL", top, sqlOperation(topClient, b.Rows)},
		{"SQL", server, sqlOperation(client, b.Rows)},
	}
	fmt.Fprintf(b.Out, "\npoint reads       clients     ops/s    p50 us    p99 us   CPU us/op   ratio of CPU\n")
	for _, clients := range b.Clients {
		results := make([]*result, len(paths))
		for i, p := range paths {
			results[i] = newResult()
			if err := newResult().drive(ctx, p.on, clients, b.Seconds/10, p.op); err != nil { // warm up
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
		for range rounds {
			for i, p := range paths {
				if err := results[i].drive(ctx, p.on, clients, b.Seconds/rounds, p.op); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
		}
		ratio := func(i, j int) float64 {
			return float64(results[i].cpuPerOperation()) / float64(results[j].cpuPerOperation())
		}
		notes := []string{"", fmt.Sprintf("%.2f of ceiling (target <= 1.35)", ratio(1, 0)), "", fmt.Sprintf("%.2f of READ (target <= 1.10)", ratio(3, 1))}
		for i, p := range paths {
			r := results[i]
			fmt.Fprintf(b.Out, "%-17s %7d %9.0f %9d %9d %11.1f   %s\n", p.name, clients, r.perSecond(),
				r.quantile(50).Microseconds(), r.quantile(99).Microseconds(), float64(r.cpuPerOperation().Nanoseconds())/1e3, notes[i])
		}
	}
	return nil
}
