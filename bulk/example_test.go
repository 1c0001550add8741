package bulk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

// The example moves the rows of a file into a table. Before and after that, it sums up a column of the table and of the
// file. Four readers concurrently read parts of the rows.
func Example() {
	client, text, stop := setUp()
	defer stop()
	ctx := context.Background()

	compare := func() (sums [2]int64) {
		snapshot, err := bulk.NewSnapshot(ctx, client, spanner.StrongRead())
		check(err)
		defer snapshot.Close()
		table, err := snapshot.Table(ctx, "Accounts", bulk.Options{})
		check(err)
		lines, err := file.Open([]string{text}, file.Options{Schema: table.Schema()})
		check(err)
		for i, source := range []bulk.Source{table, lines} {
			check(bulk.Each(ctx, source, 4, func(_ context.Context, reader int, batch arrow.RecordBatch) error {
				for _, balance := range batch.Column(1).(*array.Int64).Int64Values() {
					atomic.AddInt64(&sums[i], balance)
				}
				return nil
			}))
		}
		return sums
	}
	fmt.Println(compare())

	accounts, err := bulk.Describe(ctx, client, "Accounts")
	check(err)
	source, err := file.Open([]string{text}, file.Options{})
	check(err)
	moved, err := transfer.Import(ctx, transfer.ImportOptions{Client: client, Table: accounts, Source: source, Parallel: 4})
	check(err)
	fmt.Println(moved.Rows, compare())
	// Output:
	// [0 499500]
	// 1000 [499500 499500]
}

// setUp starts a server with an empty table, and writes a file.
func setUp() (client *spanner.Client, text string, stop func()) {
	const database = "projects/p/instances/i/databases/d"
	server, err := crowfoot.Start(context.Background(), crowfoot.Options{InMemory: true, Databases: []string{database},
		DDL: []string{"CREATE TABLE Accounts (Id INT64 NOT NULL, Balance INT64 NOT NULL) PRIMARY KEY (Id)"}})
	check(err)
	os.Setenv("SPANNER_EMULATOR_HOST", server.GRPC)
	client, err = spanner.NewClientWithConfig(context.Background(), database, spanner.ClientConfig{DisableNativeMetrics: true})
	check(err)
	dir, err := os.MkdirTemp("", "")
	check(err)
	rows := []byte("Id,Balance\n")
	for i := range 1000 {
		rows = fmt.Appendf(rows, "%d,%d\n", i, i)
	}
	text = filepath.Join(dir, "accounts.csv")
	check(os.WriteFile(text, rows, 0o600))
	return client, text, func() {
		client.Close()
		check(server.Close())
		check(os.RemoveAll(dir))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
