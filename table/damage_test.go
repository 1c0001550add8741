package table

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestErrorsComeThrough lets each call on the Writer fail in turn and checks that Apply returns the injected error.
func TestErrorsComeThrough(t *testing.T) {
	script := newScript()
	if err := script.ddl(modelDDL); err != nil {
		t.Fatal(err)
	}
	m := newModel(script.catalog, rand.New(rand.NewPCG(7, 7)))
	injected := 0
	for step := mvcc.Timestamp(1); step < 80; step++ {
		muts := m.randomCommit()
		want := m.commit(muts)
		for n := 1; ; n++ {
			err := script.m.attempt(func() error {
				script.m.failAt = n
				_, err := Apply(context.Background(), script.m, NewDescriptors(script.catalog), muts, testNow)
				return err
			})
			script.m.failAt = 0
			if errors.Is(err, errInjected) {
				injected++
				continue
			}
			m.agree(t, err, want, muts)
			break
		}
		script.m.commit(step)
		m.compare(t, script.m, "after failures")
	}
	if injected < 200 {
		t.Errorf("only %d failures", injected)
	}
}

// TestReadErrorsComeThrough lets each call on the View fail in turn and checks that Rows.Next returns the injected
// error, also if it is called again.
func TestReadErrorsComeThrough(t *testing.T) {
	s, tab := small(t, "CREATE INDEX I ON T (S)")
	ctx := context.Background()
	if _, err := Apply(ctx, s.m, NewDescriptors(s.catalog), []Mutation{smallRows(tab, 5, "x")}, testNow); err != nil {
		t.Fatal(err)
	}
	p, _ := NewProjection(tab, nil, tab.Columns)
	spans, err := p.Spans(KeySet{Keys: [][]value.Value{{value.OfInt64(1)}}, Ranges: []KeyRange{{Start: []value.Value{value.OfInt64(3)}}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 5; n++ {
		s.m.failAt = n
		rows := Read{Projection: p, Spans: spans}.Open(ctx, s.m)
		var ok bool
		for ok, err = rows.Next(); ok; ok, err = rows.Next() {
		}
		if _, again := rows.Next(); !errors.Is(err, errInjected) || again != err {
			t.Errorf("call %d: %v, then %v", n, err, again)
		}
	}
}

// TestDamagedRows checks that reading damaged keys and values, which no version of Crowfoot writes, gives an error.
func TestDamagedRows(t *testing.T) {
	s, tab := small(t, "")
	p, _ := NewProjection(tab, nil, tab.Columns)
	key := p.AppendKey(nil, []value.Value{value.OfInt64(1)})
	longID := "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
	for name, row := range map[string]Stored{
		"empty value":      {key, nil},
		"other version":    {key, []byte{9}},
		"cut ID":           {key, []byte{rowVersion, 0x80}},
		"endless ID":       {key, []byte("\x01" + longID)},
		"endless length":   {key, []byte("\x01\x01" + longID)},
		"length too long":  {key, []byte{rowVersion, 2, 9, 'x'}},
		"no length":        {key, []byte{rowVersion, 2}},
		"key without end":  {append(key[:len(key)-1:len(key)-1], 0x55, 0), []byte{rowVersion}},
		"key without part": {[]byte{key[0], 0x55, 0}, []byte{rowVersion}},
	} {
		s.m.rows.Clear()
		s.m.rows.Set(string(row.Key), string(row.Value))
		spans, _ := p.Spans(KeySet{All: true})
		_, err := Read{Projection: p, Spans: spans}.Open(context.Background(), s.m).Next()
		if name == "key without end" {
			// The changed key looks like that of a row of another table that is interleaved in T, so the read skips it.
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if usererror.CodeOf(err) != codes.Internal || !strings.HasPrefix(err.Error(), "malformed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadValues checks the errors for values that do not fit their columns: invalid UTF-8, a pending timestamp in an
// array, a JSON value that is too long, and values of a wrong type, which callers should never pass.
func TestBadValues(t *testing.T) {
	s := newScript()
	if err := s.ddl("CREATE TABLE T (Id INT64, S STRING(9), A ARRAY<STRING(9)>, J JSON) PRIMARY KEY (Id)"); err != nil {
		t.Fatal(err)
	}
	tab := s.catalog.Table("T")
	id := value.OfInt64(1)
	apply := func(column string, v value.Value) error {
		_, err := Apply(context.Background(), s.m, NewDescriptors(s.catalog), []Mutation{{
			Op: Insert, Table: tab, Columns: []*schema.Column{tab.Column("Id"), tab.Column(column)},
			Rows: [][]value.Value{{id, v}},
		}}, testNow)
		return err
	}
	list := func(v value.Value) value.Value { return value.OfArray([]value.Value{v}) }
	wantFault(t, apply("S", value.OfString("a\xff")), codes.InvalidArgument, "Invalid UTF-8 encoding in column S of table T")
	wantFault(t, apply("A", list(value.OfString("a\xff"))), codes.InvalidArgument, "Invalid UTF-8 encoding in column A of table T")
	wantFault(t, apply("A", list(value.PendingCommitTimestamp())), codes.FailedPrecondition, "allow_commit_timestamp")
	wantFault(t, apply("J", value.OfJSON(strings.Repeat(" ", maxCell+1))), codes.FailedPrecondition, "exceeds the maximum size limit")
	for column, v := range map[string]value.Value{"S": id, "A": list(id)} {
		if err := apply(column, v); usererror.CodeOf(err) != codes.Internal {
			t.Errorf("wrong type for %s: %v", column, err)
		}
	}
}
