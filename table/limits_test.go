package table

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// small makes a table T with a key column and one STRING column. The parameter more holds further DDL statements.
func small(t *testing.T, more string) (*script, *schema.Table) {
	t.Helper()
	s := newScript()
	if err := s.ddl("CREATE TABLE T (Id INT64, S STRING(MAX)) PRIMARY KEY (Id);" + more); err != nil {
		t.Fatal(err)
	}
	return s, s.catalog.Table("T")
}

func smallRows(t *schema.Table, n int, text string) Mutation {
	m := Mutation{Op: InsertOrUpdate, Table: t, Columns: t.Columns}
	for i := range n {
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(int64(i)), value.OfString(text)})
	}
	return m
}

func wantFault(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	var e *usererror.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("got %v, want %v: %s", err, code, text)
	}
}

func TestMutationLimit(t *testing.T) {
	ctx := context.Background()
	s, tab := small(t, "")
	rows := smallRows(tab, MaxMutations/2, "x")
	c, err := Apply(ctx, s.m, NewDescriptors(s.catalog), []Mutation{rows}, testNow)
	if c.Count() != MaxMutations || err != nil {
		t.Fatalf("%d mutations: %v", c.Count(), err)
	}
	_, err = Apply(ctx, s.m, NewDescriptors(s.catalog), []Mutation{rows, smallRows(tab, 1, "y")}, testNow)
	wantFault(t, err, codes.InvalidArgument, "The transaction contains too many mutations")

	// A delete of a range counts once, however many rows it deletes.
	c, err = Apply(ctx, s.m, NewDescriptors(s.catalog), []Mutation{{Op: Delete, Table: tab, Keys: KeySet{All: true}}}, testNow)
	if c.Count() != 1 || err != nil || s.m.rows.Len() != 0 {
		t.Errorf("%d mutations, %d rows left: %v", c.Count(), s.m.rows.Len(), err)
	}
}

func TestIndexEntriesCountAgainstLimit(t *testing.T) {
	s, tab := small(t, "CREATE INDEX I ON T (S)")
	_, err := Apply(context.Background(), s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, MaxMutations/2, "x")}, testNow)
	wantFault(t, err, codes.InvalidArgument, "too many mutations")
}

func TestCommitSizeLimit(t *testing.T) {
	s, tab := small(t, "")
	megabyte := strings.Repeat("x", 1<<20)
	_, err := Apply(context.Background(), s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, 99, megabyte)}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Apply(context.Background(), s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, 100, megabyte)}, testNow)
	wantFault(t, err, codes.InvalidArgument, "maximum total bytes-size")
}

// TestParentScanSkipsChildren checks that the number of cursor steps of a scan of parents depends on the number of
// parents, and not on the number of children that lie between them.
func TestParentScanSkipsChildren(t *testing.T) {
	s, tab := small(t, "CREATE TABLE C (Id INT64, K INT64) PRIMARY KEY (Id, K), INTERLEAVE IN PARENT T ON DELETE CASCADE")
	child := s.catalog.Table("C")
	children := Mutation{Op: Insert, Table: child, Columns: child.Columns}
	for id := range int64(10) {
		for k := range int64(1000) {
			children.Rows = append(children.Rows, []value.Value{value.OfInt64(id), value.OfInt64(k)})
		}
	}
	ctx := context.Background()
	if _, err := Apply(ctx, s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, 10, "x"), children}, testNow); err != nil {
		t.Fatal(err)
	}
	p, err := NewProjection(tab, nil, tab.Columns)
	if err != nil {
		t.Fatal(err)
	}
	spans, _ := p.Spans(KeySet{All: true})
	s.m.steps = 0
	if rows := readAll(t, s.m, Read{Projection: p, Spans: spans}, 0); len(rows) != 10 {
		t.Errorf("%d rows", len(rows))
	}
	if s.m.steps > 40 {
		t.Errorf("%d steps for 10 parents", s.m.steps)
	}
}

// TestParentsAreLookedUpOnce checks that writing successive children of one parent reads the parent row only once.
func TestParentsAreLookedUpOnce(t *testing.T) {
	s, tab := small(t, "CREATE TABLE C (Id INT64, K INT64) PRIMARY KEY (Id, K), INTERLEAVE IN PARENT T ON DELETE CASCADE")
	child := s.catalog.Table("C")
	children := Mutation{Op: Insert, Table: child, Columns: child.Columns}
	for k := range int64(100) {
		children.Rows = append(children.Rows, []value.Value{value.OfInt64(0), value.OfInt64(k)})
	}
	if _, err := Apply(context.Background(), s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, 1, "x"), children}, testNow); err != nil {
		t.Fatal(err)
	}
	if s.m.gets > 103 {
		t.Errorf("%d gets for 100 children and their parent", s.m.gets)
	}
}

func TestIDsSort(t *testing.T) {
	ids := []schema.TableID{1, 2, 0xED, 0xEE, 0xEF, 0xF0, 0xFF, 0x100, 0xFFFF, 0x10000, 0xFFFFFF, 0x1000000, 0xFFFFFFFF}
	last := ""
	for _, id := range ids {
		key := string(appendID(nil, id))
		if key <= last || key[0] < 2 || key[0] == 0xFF {
			t.Errorf("ID %d is %x, after %x", id, key, last)
		}
		last = key
	}
}
