package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fakeSource is a Source whose feeds a test sets.
type fakeSource struct {
	id    FeedID
	feeds func() ([]Feed, error)
}

func (s *fakeSource) ID() FeedID                             { return s.id }
func (s *fakeSource) Now(context.Context) (time.Time, error) { return day, nil }
func (s *fakeSource) Feeds(context.Context) ([]Feed, error)  { return s.feeds() }

type fakeFeed struct {
	name string
	read func(ctx context.Context, from Checkpoint, out Sink) error
}

func (f *fakeFeed) ID() FeedID { return FeedID{TableID: TableID{Name: f.name}} }
func (f *fakeFeed) Read(ctx context.Context, from Checkpoint, out Sink) error {
	return f.read(ctx, from, out)
}

func accept(context.Context, *Transaction) error { return nil }

// TestFeedsCannotBeListed checks that running feeds continue when the source fails to list its feeds.
func TestFeedsCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked, read := 0, 0
		feed := &fakeFeed{"T", func(ctx context.Context, _ Checkpoint, out Sink) error {
			read++
			out.Observe(Reading{Timestamp: day})
			<-ctx.Done()
			return ctx.Err()
		}}
		w, err := New(Options{Handler: HandlerFunc(accept), Source: &fakeSource{feeds: func() ([]Feed, error) {
			if asked++; asked == 1 {
				return []Feed{feed}, nil
			}
			return nil, status.Error([]codes.Code{codes.Unavailable, codes.PermissionDenied}[asked%2], "not now")
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if h := w.Health(); asked < 4 || read != 1 || len(h.Feeds) != 1 {
			t.Errorf("asked %d times, read %d times: %+v", asked, read, h)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestFeedComesBack lets a feed disappear and be listed again, as when a table is dropped and created again. The feed
// must not be read until the handler has returned from the earlier changes and the last checkpoint is stored.
func TestFeedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var listed atomic.Pointer[[]Feed]
		var from []Checkpoint
		var busy atomic.Bool
		handle := func(context.Context, *Transaction) error {
			busy.Store(true)
			time.Sleep(time.Minute)
			busy.Store(false)
			return nil
		}
		feed := &fakeFeed{"T", func(ctx context.Context, at Checkpoint, out Sink) error {
			out.Observe(Reading{Timestamp: day, Rows: 1})
			if from = append(from, at); len(from) == 1 {
				if _, err := out.Deliver(ctx, []*Transaction{{CommitTimestamp: day.Add(time.Hour)}}); err != nil {
					return err
				}
				out.Checkpoint(Checkpoint{Timestamp: day.Add(time.Hour)})
			} else if busy.Load() {
				t.Error("the feed is read while the handler is at work")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		listed.Store(&[]Feed{feed})
		source := &fakeSource{id: FeedID{TableID: TableID{Database: "d"}}, feeds: func() ([]Feed, error) { return *listed.Load(), nil }}
		w, err := New(Options{Handler: HandlerFunc(handle), Source: source, DiscoveryInterval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		listed.Store(new([]Feed))
		time.Sleep(5 * time.Second)
		listed.Store(&[]Feed{feed})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(from) != 2 || !from[1].Timestamp.Equal(day.Add(time.Hour)) {
			t.Errorf("read from %v", from)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestLag checks that Lag is the time from the timestamp Delivered to the database's current time. Lag must grow while
// nothing can be read, and after half a minute Health must report the feed as Retrying.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		feed := &fakeFeed{"T", func(ctx context.Context, _ Checkpoint, out Sink) error {
			out.Observe(Reading{Timestamp: day.Add(time.Hour)})
			out.Delivered(day.Add(50 * time.Minute))
			<-ctx.Done()
			return ctx.Err()
		}}
		w, err := New(Options{Handler: HandlerFunc(accept), Source: &fakeSource{feeds: func() ([]Feed, error) { return []Feed{feed}, nil }}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		if h := w.Health(); h.Feeds[0].Lag != 10*time.Minute || !h.Ready || !h.Feeds[0].Delivered.Equal(day.Add(50*time.Minute)) {
			t.Errorf("at first: %+v", h)
		}
		time.Sleep(40 * time.Second)
		if h := w.Health(); h.Feeds[0].Lag != 10*time.Minute+40*time.Second || h.Ready || h.Feeds[0].State != Retrying || !strings.Contains(fmt.Sprint(h.Feeds[0].Err), "nothing was read for 40s") {
			t.Errorf("later: %+v", h)
		}
		cancel()
		<-ended
	})
}

// slowRepository is a repository that cannot store checkpoints until a given time.
type slowRepository struct {
	*Memory
	until atomic.Pointer[time.Time]
}

// awayFor makes the repository fail for d from now on.
func (r *slowRepository) awayFor(d time.Duration) {
	until := time.Now().Add(d)
	r.until.Store(&until)
}

func (r *slowRepository) Store(ctx context.Context, id FeedID, c Checkpoint) error {
	if time.Now().Before(*r.until.Load()) {
		return errors.New("the repository is away")
	}
	return r.Memory.Store(ctx, id, c)
}

// TestRepositoryAway checks that a feed is not read until its first checkpoint is stored. While a later checkpoint
// cannot be stored, Health must show the error. The checkpoint must be stored once the repository works again, and the
// last checkpoint when Run ends.
func TestRepositoryAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &slowRepository{Memory: NewMemory()}
		r.awayFor(time.Minute)
		began := time.Now()
		var waited atomic.Int64 // how long the feed was not read, in nanoseconds
		feed := &fakeFeed{"T", func(ctx context.Context, from Checkpoint, out Sink) error {
			waited.Store(int64(time.Since(began)))
			for at := from.Timestamp; ; at = at.Add(time.Second) {
				out.Observe(Reading{Timestamp: at})
				out.Checkpoint(Checkpoint{Timestamp: at})
				if !sleep(ctx, time.Second) {
					return ctx.Err()
				}
			}
		}}
		w, err := New(Options{Handler: HandlerFunc(accept), Repository: r, Log: slog.New(slog.DiscardHandler), Source: &fakeSource{feeds: func() ([]Feed, error) { return []Feed{feed}, nil }}})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(100 * time.Second)
		if waited := time.Duration(waited.Load()); waited < time.Minute || !w.Health().Ready {
			t.Errorf("waited %v: %+v", waited, w.Health())
		}
		r.awayFor(30 * time.Second)
		time.Sleep(20 * time.Second)
		if h := w.Health(); h.Ready || h.Feeds[0].State != Running || h.Feeds[0].Err.Error() != "the repository is away" {
			t.Errorf("health: %+v", h)
		}
		time.Sleep(20500 * time.Millisecond)
		if !w.Health().Ready {
			t.Errorf("health: %+v", w.Health())
		}
		r.awayFor(time.Millisecond)
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if c, _, _ := r.Load(t.Context(), feed.ID()); !c.Timestamp.Equal(w.Health().Feeds[0].Delivered) {
			t.Errorf("stored %v of %v", c.Timestamp, w.Health().Feeds[0].Delivered)
		}
	})
}

// TestTwoWatchersOfOneFeed checks that if two watchers have the same feed and repository, one of them ends and the
// other continues. If Store has stored a checkpoint but returned an error, the runner must not take its own checkpoint
// for that of a second watcher.
func TestTwoWatchersOfOneFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		feed := &fakeFeed{"T", func(ctx context.Context, from Checkpoint, out Sink) error {
			for step := time.Duration(1); ; step++ {
				out.Checkpoint(Checkpoint{Timestamp: from.Timestamp.Add(step * time.Second)})
				if !sleep(ctx, 700*time.Millisecond) {
					return ctx.Err()
				}
			}
		}}
		r := &forgetfulRepository{Memory: NewMemory()}
		ended := make(chan error, 2)
		begin := func() {
			w, err := New(Options{Handler: HandlerFunc(accept), Repository: r, Log: slog.New(slog.DiscardHandler), Source: &fakeSource{feeds: func() ([]Feed, error) { return []Feed{feed}, nil }}})
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- w.Run(ctx) }()
		}
		begin()
		time.Sleep(time.Minute)
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
		begin()
		if err := <-ended; status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "Another watcher") {
			t.Errorf("ended with %v", err)
		}
		time.Sleep(time.Minute)
		if len(ended) > 0 {
			t.Errorf("the other has ended, too: %v", <-ended)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// forgetfulRepository returns an error from every third call of Store, although it has stored the checkpoint.
type forgetfulRepository struct {
	*Memory
	stores atomic.Int64
}

func (r *forgetfulRepository) Store(ctx context.Context, id FeedID, c Checkpoint) error {
	if r.stores.Add(1)%3 == 0 {
		return errors.Join(r.Memory.Store(ctx, id, c), errors.New("no answer"))
	}
	return r.Memory.Store(ctx, id, c)
}

// TestFeedsThatEnd checks that Run ends when all feeds have ended, and that it returns an error if one of them has
// failed with a lasting error.
func TestFeedsThatEnd(t *testing.T) {
	for _, lasts := range []error{nil, status.Error(codes.OutOfRange, "too old")} {
		synctest.Test(t, func(t *testing.T) {
			var feeds []Feed
			for i := range 3 {
				feeds = append(feeds, &fakeFeed{fmt.Sprint(i), func(context.Context, Checkpoint, Sink) error {
					time.Sleep(time.Duration(i) * time.Second)
					if i == 1 {
						return lasts
					}
					return nil
				}})
			}
			w, err := New(Options{Handler: HandlerFunc(accept), Source: &fakeSource{feeds: func() ([]Feed, error) { return feeds, nil }}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Run(t.Context()); status.Code(err) != status.Code(lasts) {
				t.Errorf("Run: %v, want %v", err, lasts)
			}
		})
	}
}
