package watch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

// TestHandlerFails checks that a transaction comes again after the handler returned an error or panicked, and that no
// later transaction comes before it. The metrics must count the failures.
func TestHandlerFails(t *testing.T) {
	c := clienttest.Connect(t, singers)
	r := newRecorder()
	calls, called := 0, make(chan struct{})
	r.fail = func(tx *watch.Transaction) error {
		calls++
		switch calls {
		case 2:
			return errTest
		case 3:
			panic("the handler's mistake")
		case 4:
			close(called)
			return errTest
		}
		return nil
	}
	w, _ := run(t, watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Handler: r, Start: time.Unix(0, 0)})
	apply(t, c, singer(1, "a"))
	apply(t, c, singer(2, "b"))
	apply(t, c, singer(3, "c"))
	<-called
	eventually(func() bool { return w.Metrics()[0].HandlerFailures == 3 })
	if got := text(r.wait(t, atLeast(3))); got != "{Singers(1):a} {Singers(2):b} {Singers(3):c}" {
		t.Errorf("delivered %s", got)
	}
	eventually(func() bool { return w.Health().Ready })
}

// TestHandlerFailsInHealth checks that Health shows a feed as Retrying, with the error, while the handler fails, even
// if the feed still reads pages.
func TestHandlerFailsInHealth(t *testing.T) {
	c := clienttest.Connect(t, singers)
	r := newRecorder()
	r.fail = func(*watch.Transaction) error { panic("the handler's mistake") }
	w, _ := run(t, watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Handler: r, Start: time.Unix(0, 0)})
	apply(t, c, singer(1, "a"))
	var h watch.Health
	eventually(func() bool {
		h = w.Health()
		return len(h.Feeds) == 1 && h.Feeds[0].State == watch.Retrying
	})
	if err := fmt.Sprint(h.Feeds[0].Err); !strings.Contains(err, "the handler panicked: the handler's mistake") {
		t.Errorf("health is %+v", h)
	}
}

// TestEachChange checks that after an error of the handler, changes of the transaction that were already handled do
// not come again.
func TestEachChange(t *testing.T) {
	c := clienttest.Connect(t, singers)
	done := make(chan string, 1)
	var got []string
	failed := false
	run(t, watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Start: time.Unix(0, 0),
		Handler: watch.EachChange(func(_ context.Context, tx *watch.Transaction, c *watch.Change) error {
			if got = append(got, changeText(*c)); len(got) == 2 && !failed {
				failed = true
				return errTest
			}
			if len(got) == 4 {
				done <- strings.Join(got, " ")
			}
			return nil
		})})
	apply(t, c, singer(1, "a"), singer(2, "b"), singer(3, "c"))
	if got := <-done; got != "Singers(1):a Singers(2):b Singers(2):b Singers(3):c" {
		t.Errorf("delivered %s", got)
	}
}

// batches is a BatchHandler.
type batches struct {
	*recorder
	sizes []int
}

func (b *batches) HandleBatch(ctx context.Context, list []*watch.Transaction) error {
	b.sizes = append(b.sizes, len(list))
	for _, tx := range list {
		if err := b.Handle(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func TestBatches(t *testing.T) {
	c := clienttest.Connect(t, singers)
	for id := range 10 {
		apply(t, c, singer(id, ""))
	}
	b := &batches{recorder: newRecorder()}
	_, stop := run(t, watch.Options{Source: &watch.Tables{Client: c}, Handler: b, Start: time.Unix(0, 0)})
	b.wait(t, atLeast(10))
	if stop(); len(b.sizes) != 1 || b.sizes[0] != 10 {
		t.Errorf("batches of %v", b.sizes)
	}
}

// TestResume checks for each kind of repository that a watcher continues where the previous one stopped. Even if the
// first watcher sees no changes, it must store the timestamp at which it starts.
func TestResume(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE TABLE Plain (Id INT64 NOT NULL) PRIMARY KEY (Id)")
	apply(t, c, singer(0, "long ago"))
	file := t.TempDir() + "/checkpoints.json"
	kinds := map[string]func() watch.Repository{
		"file":  func() watch.Repository { return watch.NewFile(file) },
		"table": func() watch.Repository { return &watch.SpannerTable{Client: c} },
	}
	memory := watch.NewMemory()
	kinds["memory"] = func() watch.Repository { return memory }
	for kind, repository := range kinds {
		o := watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, CheckpointInterval: time.Millisecond}
		once := func(more func(), n int) string {
			r := newRecorder()
			o.Handler, o.Repository = r, repository()
			w, stop := run(t, o)
			more()
			list := r.wait(t, atLeast(n))
			eventually(func() bool { return w.Health().Ready })
			if err := stop(); err != nil {
				t.Error(err)
			}
			return text(list)
		}
		once(func() {}, 0)
		apply(t, c, singer(1, "while none watches"))
		if got := once(func() {}, 1); got != "{Singers(1):while none watches}" {
			t.Errorf("%s: the second delivered %s", kind, got)
		}
		if got := once(func() { apply(t, c, singer(2, "b")) }, 1); got != "{Singers(2):b}" {
			t.Errorf("%s: the third delivered %s", kind, got)
		}
		// This table and its row are created while no watcher runs. The next watcher must deliver the row.
		clienttest.Alter(t, "CREATE TABLE Later (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
		apply(t, c, spanner.Insert("Later", []string{"Id", "Ts"}, []any{1, spanner.CommitTimestamp}))
		if got := once(func() {}, 1); got != "{Later(1)}" {
			t.Errorf("%s: the fourth delivered %s", kind, got)
		}
		clienttest.Alter(t, "DROP TABLE Later")
	}
}
