package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

const singers = `CREATE TABLE Singers (Id INT64 NOT NULL, Name STRING(MAX), Shard INT64, Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)`

// apply writes mutations and returns the commit timestamp.
func apply(t *testing.T, c *spanner.Client, list ...*spanner.Mutation) time.Time {
	t.Helper()
	at, err := c.Apply(context.Background(), list)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// singer returns a mutation that writes a row of Singers with the current commit timestamp.
func singer(id int, name string) *spanner.Mutation {
	return spanner.InsertOrUpdate("Singers", []string{"Id", "Name", "Updated"}, []any{id, name, spanner.CommitTimestamp})
}

// recorder is a handler that keeps transactions.
type recorder struct {
	mu   sync.Mutex
	list []*watch.Transaction
	more chan struct{} // closed and replaced with each transaction that is handled
	fail func(tx *watch.Transaction) error
}

func newRecorder() *recorder { return &recorder{more: make(chan struct{})} }

func (r *recorder) Handle(_ context.Context, tx *watch.Transaction) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(tx); err != nil {
			return err
		}
	}
	r.list = append(r.list, tx)
	close(r.more)
	r.more = make(chan struct{})
	return nil
}

// wait waits until the transactions handled so far satisfy the condition enough, and returns them.
func (r *recorder) wait(t *testing.T, enough func(list []*watch.Transaction) bool) []*watch.Transaction {
	t.Helper()
	for {
		r.mu.Lock()
		list, more := slices.Clone(r.list), r.more
		r.mu.Unlock()
		if enough(list) {
			return list
		}
		<-more
	}
}

// atLeast returns a condition for wait that is true when at least n changes were handled.
func atLeast(n int) func([]*watch.Transaction) bool {
	return func(list []*watch.Transaction) bool {
		n := n
		for _, tx := range list {
			n -= len(tx.Changes)
		}
		return n <= 0
	}
}

// text formats transactions without their times: {T(1):a T(2):b} {T(3):c}.
func text(list []*watch.Transaction) string {
	var all []string
	for _, tx := range list {
		var changes []string
		for _, c := range tx.Changes {
			changes = append(changes, changeText(c))
		}
		all = append(all, "{"+strings.Join(changes, " ")+"}")
	}
	return strings.Join(all, " ")
}

func changeText(c watch.Change) string {
	var key []string
	for _, v := range c.Key.Values {
		key = append(key, fmt.Sprint(v.AsInterface()))
	}
	s := fmt.Sprintf("%s(%s)", c.Table, strings.Join(key, ","))
	if i := c.Values.Index("Name"); i >= 0 {
		s += fmt.Sprint(":", c.Values.Values[i].AsInterface())
	}
	return s
}

// runUntil runs a watcher until ctx ends or Run returns by itself. ended waits until Run has returned, and returns its
// error.
func runUntil(t *testing.T, ctx context.Context, o watch.Options) (w *watch.Watcher, ended func() error) {
	t.Helper()
	if o.Log == nil && testing.Verbose() {
		o.Log = slog.Default()
	}
	w, err := watch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	return w, sync.OnceValue(func() error { return <-result })
}

// run runs a watcher until the test ends or stop is called. stop returns the error of Run.
func run(t *testing.T, o watch.Options) (w *watch.Watcher, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w, ended := runUntil(t, ctx, o)
	stop = func() error {
		cancel()
		return ended()
	}
	t.Cleanup(func() { stop() })
	return w, stop
}

// runToEnd runs a watcher until Run returns by itself, and returns its error.
func runToEnd(t *testing.T, o watch.Options) error {
	t.Helper()
	w, err := watch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w.Run(context.Background())
}

func TestTable(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE INDEX ByUpdated ON Singers(Updated)")
	before := apply(t, c, singer(1, "before"))
	r := newRecorder()
	w, stop := run(t, watch.Options{Source: &watch.Tables{Client: c, Include: []string{"singers"}, Interval: time.Millisecond}, Handler: r, Start: before})
	apply(t, c, singer(2, "a"), singer(3, "b"))
	at := apply(t, c, singer(4, "c"))
	list := r.wait(t, atLeast(3))
	if got := text(list); got != "{Singers(2):a Singers(3):b} {Singers(4):c}" {
		t.Errorf("delivered %s", got)
	}
	last := list[len(list)-1]
	if !last.CommitTimestamp.Equal(at) || last.ReadTimestamp.Before(at) || !last.Changes[0].CommitTimestamp.Equal(at) || last.Changes[0].Kind != watch.Upsert {
		t.Errorf("the last is %+v, committed at %v", last, at)
	}
	var name string
	if err := last.Changes[0].Values.Decode("Name", &name); err != nil || name != "c" {
		t.Errorf("Name is %q, %v", name, err)
	}
	if h := w.Health(); !h.Ready || len(h.Feeds) != 1 || h.Feeds[0].State != watch.Running || h.Feeds[0].Feed.Name != "Singers" {
		t.Errorf("health is %+v", h)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if m := w.Metrics()[0]; m.Rows != 3 || m.Changes != 3 || m.Transactions != 2 || m.Polls == 0 {
		t.Errorf("metrics are %+v", m)
	}
}

var errTest = errors.New("not now")

// eventually calls the function come again and again until it returns true, without a time limit. It must ask
// repeatedly, because a watcher does not announce changes of its health and metrics.
func eventually(come func() bool) {
	for !come() {
		time.Sleep(time.Millisecond)
	}
}
