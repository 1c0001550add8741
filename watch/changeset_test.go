package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/clienttest"
)

// changeSetTables is the DDL of a table of change sets and of a table that is watched through it.
var changeSetTables = []string{
	"CREATE TABLE CHANGE_SETS (CHANGE_SET_ID STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (CHANGE_SET_ID)",
	"CREATE INDEX ByTime ON CHANGE_SETS(COMMIT_TIMESTAMP)",
	"CREATE TABLE A (Id INT64 NOT NULL, Version INT64, CHANGE_SET_ID STRING(MAX)) PRIMARY KEY (Id DESC)",
	"CREATE INDEX ByChangeSet ON A(CHANGE_SET_ID)",
}

// writeChangeSet writes one change set in one transaction: rows of table A with the given ids and version.
func writeChangeSet(t *testing.T, c *spanner.Client, version int, ids ...int) {
	t.Helper()
	sets := &ChangeSets{}
	if _, err := sets.ReadWriteTransaction(context.Background(), c, func(_ context.Context, tx *spanner.ReadWriteTransaction, set string) error {
		var list []*spanner.Mutation
		for _, id := range ids {
			list = append(list, spanner.InsertOrUpdate("A", []string{"Id", "Version", "CHANGE_SET_ID"}, []any{id, version, set}))
		}
		return tx.BufferWrite(list)
	}); err != nil {
		t.Fatal(err)
	}
}

// versions formats transactions as text. For example, {7=1 3=1} {4=2 ...} stands for two transactions. The first has
// rows 7 and 3 in version 1; the second has row 4 in version 2. The dots mean that the second is Partial.
func versions(list []*Transaction) string {
	var all []string
	for _, tx := range list {
		var rows []string
		for _, c := range tx.Changes {
			rows = append(rows, c.Key.Values[0].GetStringValue()+"="+c.Values.Values[c.Values.Index("Version")].GetStringValue())
		}
		if tx.Partial {
			rows = append(rows, "...")
		}
		all = append(all, "{"+strings.Join(rows, " ")+"}")
	}
	return strings.Join(all, " ")
}

// TestChangeSetPages checks that the rows of a change set are read in several pages if one page cannot hold them, and
// that they come in several Transactions if one Transaction cannot hold them.
func TestChangeSetPages(t *testing.T) {
	c := clienttest.Connect(t, changeSetTables...)
	writeChangeSet(t, c, 1, 1, 2)
	writeChangeSet(t, c, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
	writeChangeSet(t, c, 3, 1)
	writeChangeSet(t, c, 4, 20, 21, 22, 23, 24)
	writeChangeSet(t, c, 5, 30, 31, 32, 33)
	for _, page := range []struct{ rows, bytes int }{{3, maxPageBytes}, {100, 1}} {
		p := &poll{client: c, table: TableID{Database: clienttest.Database, Name: "A"}, o: TableOptions{ChangeSets: &ChangeSets{}, Limit: page.rows}}
		sink := &keptSink{}
		tail, err := p.open(t.Context(), Checkpoint{Timestamp: time.Unix(0, 0)}, sink)
		if err != nil {
			t.Fatal(err)
		}
		tail.sets.bytes, tail.sets.most = page.bytes, 5
		if err := tail.pollOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "{2=1} {19=2 18=2 17=2 16=2 15=2 ...} {14=2 13=2 12=2 11=2 10=2} {1=3} {24=4 23=4 22=4 21=4 20=4} {33=5 32=5 31=5 30=5}"
		if got := versions(sink.list); got != want {
			t.Errorf("delivered %s\nwant %s", got, want)
		}
		for _, tx := range sink.list {
			if tx.ReadTimestamp.Before(tx.CommitTimestamp) || !tx.Changes[0].CommitTimestamp.Equal(tx.CommitTimestamp) {
				t.Errorf("%v is read at %v", tx.CommitTimestamp, tx.ReadTimestamp)
			}
		}
		if sink.partial {
			t.Error("the checkpoint moved on between the parts of a change set")
		}
	}
}

// keptSink is a Sink that keeps the transactions and the checkpoint that it gets.
type keptSink struct {
	list       []*Transaction
	checkpoint Checkpoint
	partial    bool // whether a checkpoint covered a transaction before the last part of it was delivered
}

func (s *keptSink) Deliver(_ context.Context, list []*Transaction) (int, error) {
	s.list = append(s.list, list...)
	return len(list), nil
}
func (s *keptSink) Checkpoint(c Checkpoint) {
	s.checkpoint = c
	last := s.list[len(s.list)-1]
	s.partial = s.partial || last.Partial && !c.Timestamp.Before(last.CommitTimestamp)
}
func (s *keptSink) Stored() Checkpoint  { return Checkpoint{} }
func (s *keptSink) Delivered(time.Time) {}
func (s *keptSink) Observe(Reading)     {}
func (s *keptSink) Report(error)        {}

// TestChangeSetsAreReadLate checks that the rows of change sets are read only when the handler is ready for them. A
// row that is written again before then must come only with the later change set.
func TestChangeSetsAreReadLate(t *testing.T) {
	c := clienttest.Connect(t, changeSetTables...)
	const sets = 2 * changeSetsAtOnce
	for id := range sets {
		writeChangeSet(t, c, 1, id)
	}
	reading, proceed, list := make(chan struct{}), make(chan struct{}), make(chan *Transaction, 2*sets)
	var first sync.Once
	w, err := New(Options{
		Source: &Tables{Client: c, Include: []string{"A"}, Interval: time.Millisecond, Default: TableOptions{ChangeSets: &ChangeSets{}}}, Start: time.Unix(0, 0),
		Handler: HandlerFunc(func(_ context.Context, tx *Transaction) error {
			first.Do(func() {
				close(reading)
				<-proceed
			})
			list <- tx
			return nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	<-reading
	for w.Metrics()[0].Rows < sets { // until the poll has read all change sets
		time.Sleep(time.Millisecond)
	}
	writeChangeSet(t, c, 2, sets-1)
	close(proceed)
	var got []*Transaction
	for len(got) < sets {
		got = append(got, <-list)
	}
	if text := versions(got[sets-2:]); text != fmt.Sprintf("{%d=1} {%d=2}", sets-2, sets-1) {
		t.Errorf("the last ones are %s", text)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
