package txn

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// The oracle chooses the timestamps of commits and of strong reads. It takes both from the clock, so that programs
// can compare timestamps with their own clocks. The oracle promises:
//
//  1. No commit gets a timestamp at or below one that was given out or read at: reads are repeatable.
//  2. A strong read sees every commit that was acknowledged before it began.
//  3. No read sees a commit that a crash could take back.
//
// In a running process, one field ensures (1): last, the newest timestamp that was given out or read at. The next
// timestamp is above last, even if the clock has gone back. A restarted process does not know last and cannot trust
// the clock. So the oracle stores a bound on disk that is at or above all timestamps in use: no read reads above the
// bound, and a commit above it writes a higher bound in its own batch. (It cannot rely on another commit's batch,
// because batches may become durable in another order than that of their timestamps.) After a restart, timestamps
// begin at the bound.
//
// The watermark, visible, ensures (2) and (3): every commit at or below it is durable, and by (1) no later commit
// gets a timestamp there. Commits move the watermark in the order of their timestamps. A strong read first moves it
// as near to the clock as it can without waiting: to just below the oldest commit in flight, and not above the bound.
// So two reads have different timestamps if the clock has gone on between them.
//
// To move the bound costs a synced write. Commits write anyway, so a commit that comes near the bound writes the next
// bound. When a read comes near the bound, a goroutine moves the bound in the background, and the read uses a
// timestamp below the old bound. That makes one small write a second while reads come, and none in an idle database.
// The first read after a pause finds the bound in the past. It waits for one sync. Otherwise its timestamp would be
// more than freshness old, and might even be older than the oldest versions that are still stored.
//
// How far ahead of the clock should the bound be? If it is near, it is written often. If it is far, the first
// timestamps after a crash are far ahead of the clock, because a restarted process does not know which timestamps
// below the bound were used. Neither commits nor reads wait for the clock then, but a client that commits, and at
// once reads at a timestamp of its own clock, would miss its commit. 1.25 seconds keep both costs small, and the
// restart itself takes a part of that time. Oracle.Close lowers the bound to the newest timestamp in use, so the next
// start is not ahead of the clock. A backup of the store's files holds the bound of the moment when the backup was
// made. That suffices, because the backup holds no commit above that bound.
const (
	// reservation is the distance from the newest timestamp to a new bound on disk. So it is also how far, after a
	// crash, the first timestamps may be ahead of the clock.
	reservation = mvcc.Timestamp(1250 * time.Millisecond / time.Microsecond)
	// renewal is how near a timestamp may come to the bound on disk before a higher bound is written. It is long enough
	// for a sync on a busy disk.
	renewal = mvcc.Timestamp(250 * time.Millisecond / time.Microsecond)
	// freshness is the greatest age of a strong read's timestamp. If the timestamp would be older, the read waits for
	// a newer one.
	freshness = mvcc.Timestamp(time.Second / time.Microsecond)
	// staleAfter replaces freshness while a commit is in flight. It is longer, because a newer timestamp would make the
	// read wait for that commit.
	staleAfter = mvcc.Timestamp(time.Minute / time.Microsecond)
	// clockPoll is the interval at which a read at a timestamp in the future looks at the clock.
	clockPoll = 20 * time.Millisecond
)

// Oracle gives out commit timestamps and says which reads may see them. A store has one Oracle, which all databases
// of the store share.
//
// Invariants:
//   - Timestamps rise strictly, also over restarts and when the clock goes back. Every timestamp that was given out or
//     read at is at or below a bound that was durable before, or that is in the batch of the same commit. A restart
//     begins above the bound.
//   - Every commit at or below visible is durable and applied, and no later commit gets a timestamp there.
//   - visible only moves over commits in the order of their timestamps.
type Oracle struct {
	store kv.Store
	clock func() time.Time

	visible  atomic.Int64 // the watermark: strong reads read at it
	durable  atomic.Int64 // the bound on disk: no read reads above it; after a restart, all new commits are above it
	inFlight atomic.Int32 // the length of pending, for code that does not lock mu

	reserving sync.Mutex // held while extend writes a bound; commits write bounds without locking it

	mu      sync.Mutex
	last    mvcc.Timestamp   // the newest timestamp given out or read at; the next commit gets a higher one
	claimed mvcc.Timestamp   // the highest bound that is on disk (see durable) or being written to disk
	pending []*pendingCommit // commits with a timestamp that are not yet visible; oldest first
	failed  error            // set if the store may have lost a commit, or the oracle is closed; then all commits fail

	renewing bool // true while a goroutine raises the bound on disk for later reads
}

// pendingCommit is a commit that has its timestamp and is not yet visible.
type pendingCommit struct {
	ts    mvcc.Timestamp
	bound mvcc.Timestamp // the new Oracle.durable, which the commit's batch must write; 0 if it need not write one
	old   mvcc.Timestamp // the bound that was on disk before, which the commit's batch deletes
	done  bool           // true if the batch is applied and durable, or the commit is abandoned
	gone  bool           // true if the commit has left Oracle.pending, because all commits up to ts are done
	wake  chan struct{}  // closed when gone becomes true or the store fails; nil if no goroutine waits
}

// NewOracle returns the oracle of a store. It reads the bound on disk and gives out only timestamps above it.
func NewOracle(store kv.Store, clock func() time.Time) (*Oracle, error) {
	o := &Oracle{store: store, clock: clock}
	bound, err := o.readBound()
	if err != nil {
		return nil, fmt.Errorf("read reserved timestamps: %w", err)
	}
	o.last, o.claimed = bound, bound
	o.durable.Store(int64(bound))
	o.visible.Store(int64(bound))
	return o, nil
}

// Close waits for commits in flight. Then it lowers the bound on disk to the newest timestamp in use, so that a
// restart does not begin ahead of the clock. Later commits fail. When Close has returned, the oracle does not use the
// store any more.
func (o *Oracle) Close() error {
	waitErr := o.awaitCommits(context.Background(), o.newest())
	o.reserving.Lock() // waits for a renewal that is writing; a renewal that begins later finds o.failed set
	defer o.reserving.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := cmp.Or(waitErr, o.failed); err != nil {
		return err
	}
	o.failed = errClosed
	if o.last == mvcc.Timestamp(o.durable.Load()) {
		return nil
	}
	b := o.store.NewBatch()
	defer b.Close()
	b.UseReserve()
	err := errors.Join(b.DeleteRange(boundKey(0), boundKey(-1)), b.Put(boundKey(o.last), nil), b.Commit())
	if err != nil && !errors.Is(err, kv.ErrRefused) {
		return fmt.Errorf("give back reserved timestamps: %w", err)
	}
	return nil
}

var errClosed = errors.New("store is closing")

// Visible returns the watermark: all commits at or below it are durable and visible, and no later commit gets a
// timestamp there.
func (o *Oracle) Visible() mvcc.Timestamp { return mvcc.Timestamp(o.visible.Load()) }

// Now returns the clock's time, or the watermark if the watermark is ahead of the clock. A read with a staleness reads
// at Now minus the staleness.
func (o *Oracle) Now() mvcc.Timestamp { return max(mvcc.TimestampOf(o.clock()), o.Visible()) }

// Strong returns a timestamp at or above that of every commit that was acknowledged before the call. Normally it is the
// clock's time or an earlier one. It is later than the clock's time only if the watermark is: after the clock has gone
// back, or after a crash, when the server starts above all timestamps that it may have given out before.
func (o *Oracle) Strong(ctx context.Context) (mvcc.Timestamp, error) {
	now := mvcc.TimestampOf(o.clock())
	visible := o.Visible()
	if visible < now {
		// Move visible towards now without waiting: it stays below the commits in flight and does not pass the durable
		// bound.
		o.mu.Lock()
		if o.failed == nil {
			at := min(now, mvcc.Timestamp(o.durable.Load()))
			if len(o.pending) > 0 {
				at = min(at, o.pending[0].ts-1)
			}
			o.last = max(o.last, at)
			o.show(at)
			// If the watermark is older than freshness and no commit is in flight, CloseAt below raises the bound.
			if now-o.Visible() < freshness {
				o.renew(now)
			}
		}
		visible = o.Visible()
		o.mu.Unlock()
	}
	age := now - visible
	if age < freshness || (age < staleAfter && o.inFlight.Load() > 0) {
		return visible, nil
	}
	// On a full disk the bound cannot be moved, so CloseAt fails, and the result is older than freshness allows. The
	// read still misses no commit, because a full disk takes no commits either.
	if err := o.CloseAt(ctx, now); err != nil && !errors.Is(err, kv.ErrRefused) {
		return 0, err
	}
	return o.Visible(), nil
}

// renew raises the bound on disk, in the background, if the time now is near the bound. The caller holds mu.
func (o *Oracle) renew(now mvcc.Timestamp) {
	if o.renewing || now+renewal <= mvcc.Timestamp(o.durable.Load()) {
		return
	}
	o.renewing = true
	go func() {
		// The error may be dropped: a read that needs a higher bound calls extend itself, and gets the error.
		_ = o.extend(now+renewal, now+reservation)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.renewing = false
	}()
}

// WaitFor waits for the clock to get to a timestamp, and then does what CloseAt does.
func (o *Oracle) WaitFor(ctx context.Context, at mvcc.Timestamp) error {
	if at <= o.Visible() {
		return nil
	}
	if err := o.awaitClock(ctx, at); err != nil {
		return err
	}
	return o.CloseAt(ctx, at)
}

// CloseAt closes a timestamp that the clock has shown: when CloseAt returns, every commit up to that timestamp is
// visible, and no later commit will get a timestamp there. CloseAt waits for commits in flight. It does not wait for
// the clock, which may have gone back since.
func (o *Oracle) CloseAt(ctx context.Context, at mvcc.Timestamp) error {
	if at <= o.Visible() {
		return nil
	}
	defer cpu.Waiting(ctx)()
	if at > mvcc.Timestamp(o.durable.Load()) {
		if err := o.extend(at, at+reservation); err != nil {
			return err
		}
	}
	o.mu.Lock()
	o.last = max(o.last, at)
	o.mu.Unlock()
	return o.awaitCommits(ctx, at)
}

// awaitClock waits until the clock, or the newest timestamp given out, has reached a timestamp.
func (o *Oracle) awaitClock(ctx context.Context, at mvcc.Timestamp) error {
	defer cpu.Waiting(ctx)()
	for {
		ahead := at.Time().Sub(o.clock())
		if ahead <= 0 || at <= o.newest() {
			return nil
		}
		timer := time.NewTimer(min(ahead, clockPoll))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (o *Oracle) newest() mvcc.Timestamp {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// awaitCommits waits until no commit up to a timestamp is in flight, and then moves the watermark to that timestamp.
// The caller makes sure that the timestamp is not above o.last.
func (o *Oracle) awaitCommits(ctx context.Context, at mvcc.Timestamp) error {
	for {
		o.mu.Lock()
		if o.failed != nil {
			defer o.mu.Unlock()
			return o.failed
		}
		if len(o.pending) == 0 || o.pending[0].ts > at {
			o.show(at)
			o.mu.Unlock()
			return nil
		}
		wake := o.pending[0].waiter()
		o.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiter returns a channel that is closed when the commit is no longer pending or the store fails. The caller holds the
// oracle's mu.
func (f *pendingCommit) waiter() chan struct{} {
	if f.wake == nil {
		f.wake = make(chan struct{})
	}
	return f.wake
}

// show moves the watermark forward to a timestamp, or to the durable bound if the timestamp is above the bound. (The
// timestamp of an abandoned commit can be above the bound.) The caller holds mu, so the watermark never goes back.
func (o *Oracle) show(at mvcc.Timestamp) {
	if at = min(at, mvcc.Timestamp(o.durable.Load())); at > o.Visible() {
		o.visible.Store(int64(at))
	}
}

// begin gives out the next timestamp, as a pending commit. The caller must call finish or abandon.
func (o *Oracle) begin() (*pendingCommit, error) {
	now := mvcc.TimestampOf(o.clock())
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return nil, o.failed
	}
	o.last = max(o.last+1, now)
	f := &pendingCommit{ts: o.last}
	// Every commit above the durable bound writes a bound in its own batch, because this batch may become durable
	// before any other batch that writes a bound. A commit near o.claimed, the highest bound that is durable or being
	// written, writes the next bound early, so that few commits are above the durable bound.
	durable := mvcc.Timestamp(o.durable.Load())
	near := f.ts+renewal > o.claimed
	if near {
		o.claimed = f.ts + reservation
	}
	if near || f.ts > durable {
		f.bound, f.old = o.claimed, durable
	}
	o.pending = append(o.pending, f)
	o.inFlight.Add(1)
	return f, nil
}

// commitAt gives fn a timestamp and a function that commits one batch at that timestamp. commitAt returns when the
// timestamp is visible. fn must return an error only if it has committed nothing or its commit has failed.
func (o *Oracle) commitAt(fn func(ts mvcc.Timestamp, commit func(kv.Batch) error) error) (err error) {
	f, err := o.begin()
	if err != nil {
		return err
	}
	var written bool
	var committed error
	defer func() { // also if fn panics, because a commit that stays pending would hold up every later commit
		finish := o.abandon
		if written {
			finish = func(f *pendingCommit) error { return o.finish(f, committed) }
		}
		err = cmp.Or(err, finish(f))
	}()
	return fn(f.ts, func(b kv.Batch) error {
		if err := f.putReservation(b); err != nil {
			return err
		}
		written, committed = true, errCut
		committed = b.Commit()
		return committed
	})
}

// errCut takes the place of a commit's result if the commit panicked and returned none.
var errCut = errors.New("the commit was cut short")

// Begin implements changestream.Oracle. The caller may hold mutexes when it calls Begin. But finishing the commit waits
// for all earlier commits. So the caller must then hold no mutex that an earlier commit may wait for.
func (o *Oracle) Begin(b kv.Batch) (mvcc.Timestamp, changestream.PendingCommit, error) {
	f, err := o.begin()
	if err != nil {
		return 0, nil, err
	}
	return f.ts, commitHandle{o, f}, f.putReservation(b)
}

// commitHandle is a pending commit that Begin has returned.
type commitHandle struct {
	o *Oracle
	f *pendingCommit
}

func (t commitHandle) Finish(committed error) error { return t.o.finish(t.f, committed) }
func (t commitHandle) Abandon() error               { return t.o.abandon(t.f) }

// abandon finishes a commit whose batch was not written.
func (o *Oracle) abandon(f *pendingCommit) error {
	f.bound = 0
	return o.finish(f, nil)
}

// finish ends a pending commit. err is the result of committing its batch. finish returns when the commit is visible,
// so it waits for all commits with lower timestamps.
//
// If the store has refused the batch, it has written nothing, and finish abandons the commit. After any other error
// it is unknown what the store has written. Then no commit becomes visible any more, and every later commit fails.
func (o *Oracle) finish(f *pendingCommit, err error) error {
	if errors.Is(err, kv.ErrRefused) {
		return cmp.Or(o.abandon(f), err)
	}
	o.mu.Lock()
	f.done = true
	if err != nil && o.failed == nil {
		o.failed = fmt.Errorf("store failed during a commit: %w", err)
		for _, p := range o.pending {
			if p.wake != nil {
				close(p.wake)
				p.wake = nil
			}
		}
	}
	if o.failed != nil {
		defer o.mu.Unlock()
		return o.failed
	}
	if f.bound > mvcc.Timestamp(o.durable.Load()) {
		o.durable.Store(int64(f.bound))
	}
	// visible moves past the commits that are done, up to the first commit that is not done.
	n := 0
	for ; n < len(o.pending) && o.pending[n].done; n++ {
		p := o.pending[n]
		o.show(p.ts)
		p.gone = true
		if p.wake != nil {
			close(p.wake)
		}
	}
	o.pending = slices.Delete(o.pending, 0, n)
	o.inFlight.Add(int32(-n))
	if len(o.pending) == 0 {
		o.show(o.last)
	}
	if f.gone {
		o.mu.Unlock()
		return nil
	}
	wake := f.waiter()
	o.mu.Unlock()
	<-wake
	o.mu.Lock()
	defer o.mu.Unlock()
	if !f.gone {
		return o.failed
	}
	return nil
}

// The oracle's bound is stored as the key of a record without a value, in space 0. There may be several such records,
// because batches may be applied in another order than that of their timestamps. Then the highest bound counts.
const boundName = "txn/bound/"

func boundKey(bound mvcc.Timestamp) []byte {
	key := append(make([]byte, 4, 4+len(boundName)+9), boundName...)
	return append(binary.BigEndian.AppendUint64(key, uint64(bound)), 0)
}

// putReservation adds the bound that a pending commit must write, if any, to its batch.
func (f *pendingCommit) putReservation(b kv.Batch) error {
	if f.bound == 0 {
		return nil
	}
	return putBound(b, f.bound, f.old)
}

func putBound(b kv.Batch, bound, old mvcc.Timestamp) error {
	if old > 0 && old != bound {
		if err := b.Delete(boundKey(old)); err != nil {
			return err
		}
	}
	return b.Put(boundKey(bound), nil)
}

// extend raises the durable bound if it is below the value of the parameter need. The new bound is the value of the
// parameter to. But if a commit is already writing a bound that is high enough, extend writes that same bound: of two
// different bounds, the lower one would stay on disk, because each batch deletes only the bound that was durable
// before.
func (o *Oracle) extend(need, to mvcc.Timestamp) error {
	o.reserving.Lock()
	defer o.reserving.Unlock()
	o.mu.Lock()
	old, failed := mvcc.Timestamp(o.durable.Load()), o.failed
	if need > old && failed == nil && o.claimed < need {
		o.claimed = to
	}
	bound := o.claimed
	o.mu.Unlock()
	switch {
	case need <= old:
		return nil
	case failed != nil:
		return failed
	}
	b := o.store.NewBatch()
	defer b.Close()
	b.UseReserve()
	if err := errors.Join(putBound(b, bound, old), b.Commit()); err != nil {
		return fmt.Errorf("reserve timestamps: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if bound > mvcc.Timestamp(o.durable.Load()) {
		o.durable.Store(int64(bound))
	}
	return nil
}

// readBound returns the highest bound in the store and deletes all lower ones.
func (o *Oracle) readBound() (bound mvcc.Timestamp, err error) {
	lower, upper := boundKey(0), boundKey(-1)
	it, err := o.store.NewIter(lower, upper)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	if !it.Last() {
		return 0, it.Error()
	}
	key := it.Key()
	if len(key) != len(lower) {
		return 0, fmt.Errorf("reservation %x is malformed", key)
	}
	bound = mvcc.Timestamp(binary.BigEndian.Uint64(key[len(key)-9:]))
	b := o.store.NewBatch()
	defer b.Close()
	b.UseReserve()
	if err := b.DeleteRange(lower, boundKey(bound)); err != nil {
		return 0, err
	}
	// If the store refuses this batch, the next start deletes the lower bounds.
	if err := b.CommitNoSync(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return 0, err
	}
	return bound, nil
}
