package retrieval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// fakeDatabase implements relational. After a call of fill, it holds only the keys of a table.
type fakeDatabase struct {
	relational
	mu         sync.Mutex
	statements []string
	keys, read []int64
}

func (d *fakeDatabase) exec(_ context.Context, statement string) error {
	d.statements = append(d.statements, statement)
	return nil
}

func (d *fakeDatabase) fill(_ context.Context, table, file string) error {
	d.statements = append(d.statements, "fill "+table+" "+file)
	d.keys = []int64{1, 5, 6, 7, 32, 33, 38}
	return nil
}

func (d *fakeDatabase) server() *harness.Server { return new(harness.Server) }

func (d *fakeDatabase) rows(_ context.Context, _ int, query string, each func(scanRow) error) error {
	if d.keys == nil {
		return errors.New("no such table")
	}
	if strings.HasPrefix(query, "SELECT COUNT(*)") {
		return each(func(dest ...any) error {
			for i, v := range []int64{int64(len(d.keys)), slices.Max(d.keys)}[:len(dest)] {
				*dest[i].(*int64) = v
			}
			return nil
		})
	}
	after, until := int64(0), slices.Max(d.keys)
	if _, where, ok := strings.Cut(query, " WHERE "); ok {
		if _, err := fmt.Sscanf(where, "o_orderkey > %d AND o_orderkey <= %d", &after, &until); err != nil {
			return err
		}
	}
	for _, k := range d.keys {
		if k <= after || k > until {
			continue
		}
		d.mu.Lock()
		d.read = append(d.read, k)
		d.mu.Unlock()
		if err := each(func(dest ...any) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// TestOtherDatabase checks that the table is created with the database's types, and filled only once. n readers must
// read each key once, even if the keys have gaps.
func TestOtherDatabase(t *testing.T) {
	fake := new(fakeDatabase)
	table := retrievedTables["orders"]
	d := otherDatabase{relational: fake, name: "Fake"}
	for range 2 {
		if err := d.ensure(t.Context(), table, 7, "orders.tbl"); err != nil {
			t.Fatal(err)
		}
	}
	if len(fake.statements) != 3 || fake.statements[2] != "fill crowfoot_bench_orders orders.tbl" {
		t.Fatalf("statements %q", fake.statements)
	}
	ddl := fake.statements[1]
	for _, want := range []string{"EXISTS crowfoot_bench_orders (o_orderkey BIGINT NOT NULL", "o_totalprice DOUBLE PRECISION", "o_comment VARCHAR(79) NOT NULL, PRIMARY KEY (o_orderkey))"} {
		if !strings.Contains(ddl, want) {
			t.Errorf("DDL %s has no %q", ddl, want)
		}
	}
	b := &retrieval{table: table, rows: 7, others: []otherDatabase{d}}
	for n := 1; n <= 8; n++ {
		fake.read = nil
		rows, err := b.fromOthers(n)[0].Operation(t.Context(), harness.Call{})
		slices.Sort(fake.read)
		if rows != 7 || err != nil || !slices.Equal(fake.read, fake.keys) {
			t.Errorf("%d readers: %d rows, %v, keys %v", n, rows, err, fake.read)
		}
	}
}

// TestWithoutLastDelimiter checks that lines of TPC-H's text files are converted to lines that PostgreSQL's COPY
// accepts.
func TestWithoutLastDelimiter(t *testing.T) {
	var out bytes.Buffer
	if err := withoutLastDelimiter(&out, strings.NewReader("1|a|\n2|b|c|\n")); err != nil || out.String() != "1|a\n2|b|c\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
