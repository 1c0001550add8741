package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// feedRunner runs one feed. It is the Sink of the feed: it calls the handler, stores checkpoints and tries again after
// errors.
type feedRunner struct {
	w      *Watcher
	feed   Feed
	id     FeedID
	cancel context.CancelFunc
	retry  chan struct{} // receives a value when the feed must be tried again after a lasting error
	over   chan struct{} // closed when the method run returns
	before *feedRunner   // an earlier runner of the same feed that was removed and may still run; nil if there is none

	mu         sync.Mutex
	state      State // the method note sets it, depending on the fields below
	since      time.Time
	readErr    error
	handleErr  error
	storeErr   error
	reported   error // the last error that the feed reported and that did not stop it
	ended      bool
	newest     time.Time // the highest timestamp at which the source was read
	readAt     time.Time // when the last read ended, by this machine's clock
	delivered  time.Time
	checkpoint Checkpoint // the newest checkpoint that the feed has given
	stored     Checkpoint
	metrics    FeedMetrics

	tried []time.Time // timestamps that this runner may have stored in the repository; used only by the goroutine that stores
}

const (
	// minPause and maxPause bound the pause before a failed feed or handler is tried again. Each pause is about twice
	// as long as the previous pause.
	minPause = 50 * time.Millisecond
	maxPause = 10 * time.Second
	// lastStore limits how long storing the last checkpoints may take when Run ends.
	lastStore = 10 * time.Second
)

// pause returns how long to wait after the given number of failures. It adds randomness, so that watchers do not all
// retry at the same moment.
func pause(failures int) time.Duration {
	d := maxPause
	if failures < 16 {
		d = min(minPause<<failures, maxPause)
	}
	return d/2 + rand.N(d/2+1)
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lasting reports whether a retry would fail in the same way, for example because the request is wrong or names an
// object that does not exist.
func lasting(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// run reads the feed until ctx ends, the feed ends, or the handler returns a fatal error.
func (l *feedRunner) run(ctx context.Context) {
	defer close(l.over)
	defer l.w.runnerOver()
	defer l.note(func() { l.ended = true })
	if l.before != nil { // wait, because the earlier runner may still call the handler, and then stores a last checkpoint
		<-l.before.over
		l.mu.Lock()
		l.metrics, l.before = l.before.count(), nil
		l.mu.Unlock()
	}
	if !l.load(ctx) {
		return
	}
	storing, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.storeAll(storing)
	}()
	defer func() { stop(); <-stopped }()
	for failures := 0; ; failures++ {
		l.mu.Lock()
		from, reads := l.checkpoint, l.metrics.Reads
		l.mu.Unlock()
		err := l.feed.Read(ctx, from, l)
		if err == nil || ctx.Err() != nil {
			return
		}
		if isFatal(err) {
			l.w.fail(err)
			return
		}
		l.note(func() {
			if l.metrics.ReadFailures++; l.metrics.Reads > reads {
				failures = 0
			}
		})
		if !l.wait(ctx, err, failures) {
			return
		}
	}
}

// count returns the metrics of the feed, summed over this runner and the earlier ones.
func (l *feedRunner) count() FeedMetrics {
	l.mu.Lock()
	before, m := l.before, l.metrics
	l.mu.Unlock()
	if before != nil { // this runner still waits for the earlier one, and has counted nothing yet
		m = before.count()
	}
	m.Feed = l.id
	return m
}

// wait waits until the feed must be tried again after an error. If the error is lasting, wait waits for a value from
// the channel retry; otherwise it makes a pause. It returns false if ctx ends first.
func (l *feedRunner) wait(ctx context.Context, err error, failures int) bool {
	l.note(func() { l.readErr = err })
	if !lasting(err) {
		return sleep(ctx, pause(failures))
	}
	l.w.runnerOver()
	select {
	case <-l.retry:
		return true
	case <-ctx.Done():
		return false
	}
}

// note calls the function change, which modifies fields of the runner. Then note sets the state that follows from these
// fields, and logs the state if it has changed. The caller must not hold mu.
func (l *feedRunner) note(change func()) {
	l.mu.Lock()
	change()
	before := l.state
	switch {
	case l.ended:
		l.state = Stopped
	case lasting(l.readErr):
		l.state = Failed
	case l.readErr != nil || l.handleErr != nil:
		l.state = Retrying
	case l.readAt.IsZero():
		l.state = Starting
	default:
		l.state = Running
	}
	state, err := l.state, errors.Join(l.readErr, l.handleErr)
	if state != before {
		l.since = time.Now()
	}
	l.mu.Unlock()
	switch {
	case state == before:
	case state == Retrying:
		l.w.log.Warn("the feed is tried again", l.name(), "error", err)
	case state == Failed:
		l.w.log.Error("the feed has failed", l.name(), "error", err)
	default:
		l.w.log.Info("the feed has changed its state", l.name(), "state", state.String())
	}
}

func (l *feedRunner) name() slog.Attr { return slog.String("feed", l.id.String()) }

// load gets the checkpoint from the repository. If there is none, the feed starts at the timestamp at which the watcher
// starts, and load stores this timestamp at once. So if the watcher stops before anything changes, the next watcher
// begins there, too. load returns false if ctx ends.
func (l *feedRunner) load(ctx context.Context) bool {
	for failures := 0; ; failures++ {
		c, ok, err := l.w.o.Repository.Load(ctx, l.id)
		if err == nil && !ok {
			c = Checkpoint{Timestamp: l.w.start}
			err = l.w.o.Repository.Store(ctx, l.id, c)
		}
		if err == nil {
			l.mu.Lock()
			l.checkpoint, l.stored, l.delivered = c, c, c.Timestamp
			l.mu.Unlock()
			l.tried = []time.Time{c.Timestamp}
			return true
		}
		l.mu.Lock()
		l.metrics.CheckpointFailures++
		l.mu.Unlock()
		if ctx.Err() != nil || !l.wait(ctx, err, failures) {
			return false
		}
	}
}

// Deliver implements Sink.
func (l *feedRunner) Deliver(ctx context.Context, list []*Transaction) (int, error) {
	if h, ok := l.w.o.Handler.(BatchHandler); ok {
		if len(list) == 0 {
			return 0, nil
		}
		if err := l.call(ctx, list, func() error { return h.HandleBatch(ctx, list) }); err != nil {
			return 0, err
		}
		return len(list), nil
	}
	for i, tx := range list {
		if err := l.call(ctx, list[i:i+1], func() error { return l.w.o.Handler.Handle(ctx, tx) }); err != nil {
			return i, err
		}
	}
	return len(list), nil
}

// call calls the handler until the handler has taken the transactions or returns a fatal error, or until ctx ends.
func (l *feedRunner) call(ctx context.Context, list []*Transaction, handle func() error) error {
	for failures := 0; ; failures++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		err := recovered(handle)
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // ctx ended during the call, so the error is not the handler's
		}
		l.handled(list, time.Since(start), err)
		if err == nil || isFatal(err) {
			return err
		}
		if !sleep(ctx, pause(failures)) {
			return ctx.Err()
		}
	}
}

func (l *feedRunner) handled(list []*Transaction, took time.Duration, err error) {
	l.note(func() {
		if !isFatal(err) { // a fatal error ends Run, so the feed is not Retrying
			l.handleErr = err
		}
		l.metrics.HandlerTime += took
		if err != nil {
			l.metrics.HandlerFailures++
			return
		}
		l.metrics.Transactions += int64(len(list))
		for _, tx := range list {
			l.metrics.Changes += int64(len(tx.Changes))
		}
	})
}

// recovered calls f and turns a panic into an error.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

// Checkpoint implements Sink.
func (l *feedRunner) Checkpoint(c Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checkpoint = c
	if c.Timestamp.After(l.delivered) {
		l.delivered = c.Timestamp
	}
}

// Delivered implements Sink.
func (l *feedRunner) Delivered(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.delivered) {
		l.delivered = until
	}
}

// Stored implements Sink.
func (l *feedRunner) Stored() Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored
}

// Observe implements Sink.
func (l *feedRunner) Observe(r Reading) {
	l.note(func() {
		if r.Pruned > 0 {
			l.metrics.Pruned += int64(r.Pruned)
			l.reported = nil
			return
		}
		l.metrics.Polls += int64(r.Polls)
		l.metrics.Reads++
		l.metrics.Rows += int64(r.Rows)
		l.metrics.ReadTime += r.Duration
		l.readErr, l.readAt = nil, time.Now()
		if r.Timestamp.After(l.newest) {
			l.newest = r.Timestamp
		}
	})
}

// Report implements Sink.
func (l *feedRunner) Report(err error) {
	l.note(func() { l.reported = err })
	l.w.log.Warn("the feed goes on after an error", l.name(), "error", err)
}

// storeAll stores the checkpoint after each CheckpointInterval in which the checkpoint has moved, and once more when
// ctx ends.
func (l *feedRunner) storeAll(ctx context.Context) {
	for sleep(ctx, l.w.o.CheckpointInterval) {
		l.store(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStore)
	defer cancel()
	l.store(ctx)
}

func (l *feedRunner) store(ctx context.Context) {
	l.mu.Lock()
	c := l.checkpoint
	same := c.Position == l.stored.Position && c.Timestamp.Equal(l.stored.Timestamp)
	l.mu.Unlock()
	if same {
		return
	}
	err := l.replace(ctx, c)
	if isFatal(err) {
		l.w.fail(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.storeErr = err; err == nil {
		l.stored = c
		l.metrics.Checkpoints++
		return
	}
	l.metrics.CheckpointFailures++
	if ctx.Err() == nil {
		l.w.log.Warn("the checkpoint cannot be stored", l.name(), "error", err)
	}
}

// replace stores a checkpoint in place of one that this runner has stored or tried to store. If the repository holds
// any other checkpoint, a second watcher delivers the same feed, and both would overwrite each other's progress. Then
// replace returns a fatal error.
func (l *feedRunner) replace(ctx context.Context, c Checkpoint) error {
	before, ok, err := l.w.o.Repository.Load(ctx, l.id)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(l.tried, before.Timestamp.Equal)
	if ok && at < 0 {
		return Fatal(status.Errorf(codes.FailedPrecondition, "Another watcher stores checkpoints of %s in the same repository: one at %s is there. Give each watcher a repository of its own.",
			l.id, before.Timestamp.Format(time.RFC3339Nano)))
	}
	l.tried = append(l.tried[max(at, 0):], c.Timestamp)
	if err := l.w.o.Repository.Store(ctx, l.id, c); err != nil {
		return err
	}
	l.tried = []time.Time{c.Timestamp}
	return nil
}

// stalled is the longest time since the last successful read for which Health still reports a feed as Running. After
// that, it reports Retrying.
const stalled = 30 * time.Second

// health returns the state of the runner for Watcher.Health.
func (l *feedRunner) health() FeedHealth {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := FeedHealth{Feed: l.id, State: l.state, Since: l.since, Delivered: l.delivered, Err: errors.Join(l.readErr, l.handleErr, l.storeErr, l.reported)}
	if !l.readAt.IsZero() {
		quiet := time.Since(l.readAt)
		h.Lag = max(l.newest.Sub(l.delivered), 0) + quiet
		if l.state == Running && quiet > stalled {
			h.State, h.Since = Retrying, l.readAt
			h.Err = errors.Join(h.Err, fmt.Errorf("nothing was read for %v", quiet.Round(time.Second)))
		}
	}
	return h
}
