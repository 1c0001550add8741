package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// loaded is a server in a process of its own, with clients. The server has the table of the benchmarks: a key and ten
// strings of 100 letters.
type loaded struct {
	*testing.T
	ctx     context.Context
	http    string
	client  *spanner.Client
	raw     spannerpb.SpannerClient
	session string
}

const loadedRows = 3000

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	dir := t.TempDir()
	ddl := filepath.Join(dir, "schema.sql")
	script := "CREATE TABLE T (Id INT64 NOT NULL, " + strings.Join(loadedColumns()[1:], " STRING(100), ") + " STRING(100)) PRIMARY KEY (Id)"
	if err := os.WriteFile(ddl, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	_, api, httpAddress := serveBoth(t, "--data", filepath.Join(dir, "data"), "--database", crashDatabase, "--ddl", ddl)
	conn, err := grpc.NewClient(api, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &loaded{T: t, ctx: ctx, http: httpAddress, client: connect(t, api), raw: spannerpb.NewSpannerClient(conn)}
	t.Cleanup(func() { cancel(); conn.Close(); l.client.Close() })
	ses, err := l.raw.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: crashDatabase, Session: &spannerpb.Session{Multiplexed: true}})
	l.ok(err)
	l.session = ses.Name
	for from := 0; from < loadedRows; from += 500 {
		var muts []*spanner.Mutation
		for id := from; id < from+500; id++ {
			muts = append(muts, spanner.Insert("T", loadedColumns(), loadedRow(int64(id))))
		}
		_, err := l.client.Apply(ctx, muts)
		l.ok(err)
	}
	return l
}

func loadedColumns() []string {
	list := []string{"Id"}
	for i := range 10 {
		list = append(list, fmt.Sprint("F", i))
	}
	return list
}

func loadedRow(id int64) []any {
	row := []any{id}
	for range 10 {
		row = append(row, strings.Repeat("x", 100))
	}
	return row
}

// someID returns the ID of an existing row that at least nine rows follow. newID returns an ID that no row has.
func someID() int64 { return rand.Int64N(loadedRows - 10) }
func newID() int64  { return loadedRows + rand.Int64N(1<<50) }

func (l *loaded) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// cpu returns, in seconds, the CPU time that the server's process has used and the CPU time that its requests were
// charged.
func (l *loaded) cpu() (process, requests float64) {
	l.Helper()
	reply, err := http.Get("http://" + l.http + "/metrics")
	l.ok(err)
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		seconds, _ := strconv.ParseFloat(text, 64)
		switch {
		case name == "process_cpu_seconds_total":
			process = seconds
		case strings.HasPrefix(name, "crowfoot_cpu_seconds_total{"), strings.HasPrefix(name, "crowfoot_shared_cpu_seconds_total{"):
			requests += seconds
		}
	}
	l.ok(lines.Err())
	return process, requests
}

// during runs workers at the same time for a duration. Each worker sends its request again and again.
func (l *loaded) during(d time.Duration, workers ...func(ctx context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, d)
	defer cancel()
	var group sync.WaitGroup
	for _, work := range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := work(l.ctx); err != nil {
					l.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// mixed returns the load of the benchmarks: reads of one row and of ranges by READ and SQL, an aggregation, and commits
// of one row by mutation and DML.
func (l *loaded) mixed() []func(context.Context) error {
	read := func(keys func() spanner.KeySet) func(context.Context) error {
		return func(ctx context.Context) error {
			return l.client.Single().Read(ctx, "T", keys(), loadedColumns()).Do(func(*spanner.Row) error { return nil })
		}
	}
	query := func(sql string) func(context.Context) error {
		return func(ctx context.Context) error {
			return l.client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"id": someID()}}).Do(func(*spanner.Row) error { return nil })
		}
	}
	return []func(context.Context) error{
		read(func() spanner.KeySet { return spanner.Key{someID()} }),
		query("SELECT * FROM T WHERE Id = @id"),
		read(func() spanner.KeySet {
			id := someID()
			return spanner.KeyRange{Start: spanner.Key{id}, End: spanner.Key{id + 10}}
		}),
		query("SELECT * FROM T WHERE Id BETWEEN @id AND @id + 9"),
		query("SELECT COUNT(*), MAX(F0) FROM T WHERE Id < @id"),
		func(ctx context.Context) error {
			_, err := l.client.Apply(ctx, []*spanner.Mutation{spanner.Insert("T", loadedColumns(), loadedRow(newID()))})
			return err
		},
		func(ctx context.Context) error {
			_, err := l.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO T (Id, F0) VALUES (@id, 'x')", Params: map[string]any{"id": newID()}})
				return err
			})
			return err
		},
	}
}
