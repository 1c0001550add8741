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

// The oracle answers two questions: which timestamp does a commit get, and at which does a strong read read? It answers both from the clock,
// so that programs can compare timestamps with clocks of their own. It promises:
//
//  1. No commit gets a timestamp at or below one that was given out or read at: reads are repeatable.
//  2. A strong read sees every commit that was acknowledged before it began.
//  3. No read sees a commit that a crash could take back.
//
// In a running process, (1) takes one number, last, which commits and reads move: the next timestamp is above it, even if the clock has gone
// back. A restart does not know last and cannot trust the clock. So there is a bound on disk, ahead of need. No read reads above the bound on
// disk, and a commit above it carries a higher bound in its own batch, since batches may become durable in another order than that of their
// timestamps. A restart begins at the bound.
//
// (2) and (3) are the watermark, visible: every commit at or below it is durable, and by (1) no other will join them. Commits move it in the
// order of their timestamps. A strong read first moves it as near to the clock as it can without waiting: to just below the oldest commit in
// flight, and not above the bound. So two reads have different timestamps if the clock has gone on between them.
//
// To move the bound costs a synced write. Commits write anyway, and one that comes near to the bound carries the next. Reads that come near to it
// have it moved in the background and go on below the old one: one small write a second while reads come, and none in an idle database. The
// first read after a pause finds the bound in the past. It waits for one sync rather than read at a timestamp that is more than freshness old,
// and that might even be older than the versions that are kept.
//
// The nearer the bound, the more often it is written. The farther the bound, the farther ahead of the clock are the first timestamps after a crash,
// for a restart does not know how much of the reservation was used. Neither commits nor reads wait for the clock then, but a client that
// commits and reads at a timestamp of its own clock at once would miss its commit. A second and a quarter keeps both small, and the restart
// itself takes a part of it. A store that is closed in order gives the rest back. A copy of the store's files holds the bound of its moment, which
// is enough, as it holds no commit above.
const (
	// reservation is how far ahead of need timestamps are reserved. It is also how far, after a crash, the first
	// timestamps may be ahead of the clock.
	reservation = mvcc.Timestamp(1250 * time.Millisecond / time.Microsecond)
	// renewal is how much of the reservation is left when more is reserved: time enough for a sync on a disk that is busy.
	renewal = mvcc.Timestamp(250 * time.Millisecond / time.Microsecond)
	// freshness is how old the timestamp of a strong read may be that does not wait.
	freshness = mvcc.Timestamp(time.Second / time.Microsecond)
	// staleAfter is how old it may be while a commit is in flight, which a newer one would have to wait for.
	staleAfter = mvcc.Timestamp(time.Minute / time.Microsecond)
	// clockPoll is how long a read in the future sleeps at most before it looks at the clock again.
	clockPoll = 20 * time.Millisecond
)

// Oracle gives out commit timestamps and says which reads may see them. A store
// has one, which all its databases share.
//
// Invariants:
//   - Timestamps rise strictly, also over restarts and when the clock goes back: every timestamp that was given out or
//     read at is at or below a bound that was durable before, or that is part of the same batch; a restart begins above it.
//   - Every commit at or below visible is durable and applied, and no other will ever be at or below it.
//   - visible only moves over commits in the order of their timestamps.
type Oracle struct {
	store kv.Store
	clock func() time.Time

	visible  atomic.Int64 // the watermark: what strong reads read at
	durable  atomic.Int64 // the bound that is on disk
	inFlight atomic.Int32

	reserving sync.Mutex // one extension of the bound beside commits at a time

	mu      sync.Mutex
	last    mvcc.Timestamp // the newest one given out or read at: all that follow are above
	claimed mvcc.Timestamp // the bound that is on disk or on its way there
	flights []*flight      // given out, not yet visible; oldest first
	failed  error          // the store may have lost a commit, or is closed: nothing goes on

	renewing bool // a goroutine extends the bound for reads to come
}

// flight is a commit from its timestamp to its visibility.
type flight struct {
	ts    mvcc.Timestamp
	bound mvcc.Timestamp // what its batch must carry as a reservation, or 0
	old   mvcc.Timestamp // the bound on disk that it replaces
	done  bool           // applied and durable, or given up
	gone  bool           // visible has passed it
	wake  chan struct{}  // closed when gone; nil if no goroutine waits for it
}

// NewOracle reads what a store has given out and goes on above it.
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

// Close waits for commits in flight and gives back the timestamps that are
// reserved but not used, so that a restart does not begin ahead of the clock.
// Later commits fail. When it returns, the oracle does not use the store any more.
func (o *Oracle) Close() error {
	landed := o.landed(context.Background(), o.newest())
	o.reserving.Lock() // waits for a renewal that writes; a later one finds the oracle closed, or failed
	defer o.reserving.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := cmp.Or(landed, o.failed); err != nil {
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

// Visible is the watermark: the newest timestamp at which everything is known.
func (o *Oracle) Visible() mvcc.Timestamp { return mvcc.Timestamp(o.visible.Load()) }

// Now is the clock's time, or the watermark if that is ahead: staleness is counted from here.
func (o *Oracle) Now() mvcc.Timestamp { return max(mvcc.TimestampOf(o.clock()), o.Visible()) }

// Strong returns a timestamp at or above every commit that was acknowledged before the call. It is ahead of the clock only if commits are: the
// clock has gone back, or the server has started after a crash.
func (o *Oracle) Strong(ctx context.Context) (mvcc.Timestamp, error) {
	now := mvcc.TimestampOf(o.clock())
	visible := o.Visible()
	if visible < now {
		visible = o.approach(now)
	}
	age := now - visible
	if age < freshness || (age < staleAfter && o.inFlight.Load() > 0) {
		return visible, nil
	}
	// A full disk takes no newer timestamp. It takes no commit either, so nothing newer was acknowledged.
	if err := o.CloseAt(ctx, now); err != nil && !errors.Is(err, kv.ErrRefused) {
		return 0, err
	}
	return o.Visible(), nil
}

// approach moves visible as near to now, which the clock has shown, as it can without waiting: below the commits in flight, and up to the
// durable bound.
func (o *Oracle) approach(now mvcc.Timestamp) mvcc.Timestamp {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return o.Visible()
	}
	at := min(now, mvcc.Timestamp(o.durable.Load()))
	if len(o.flights) > 0 {
		at = min(at, o.flights[0].ts-1)
	}
	o.last = max(o.last, at)
	o.show(at)
	visible := o.Visible()
	if now-visible < freshness { // otherwise the read reserves for itself
		o.renew(now)
	}
	return visible
}

// renew reserves more timestamps in the background if few are left. mu is held.
func (o *Oracle) renew(now mvcc.Timestamp) {
	if o.renewing || now+renewal <= mvcc.Timestamp(o.durable.Load()) {
		return
	}
	o.renewing = true
	go func() {
		_ = o.extend(now+renewal, now+reservation) // a read that lacks the reservation extends it itself, and gets the error
		o.mu.Lock()
		defer o.mu.Unlock()
		o.renewing = false
	}()
}

// WaitFor waits for the clock to get to a timestamp, then closes it as CloseAt does.
func (o *Oracle) WaitFor(ctx context.Context, at mvcc.Timestamp) error {
	if at <= o.Visible() {
		return nil
	}
	if err := o.awaitClock(ctx, at); err != nil {
		return err
	}
	return o.CloseAt(ctx, at)
}

// CloseAt closes a timestamp that the clock has shown: when it returns,
// everything at or below at is visible and no commit will join it. It waits for
// commits in flight, and not for the clock, which may have gone back since.
func (o *Oracle) CloseAt(ctx context.Context, at mvcc.Timestamp) error {
	if at <= o.Visible() {
		return nil
	}
	defer cpu.Waiting(ctx)()
	if err := o.reserve(at); err != nil {
		return err
	}
	o.mu.Lock()
	o.last = max(o.last, at)
	o.mu.Unlock()
	return o.landed(ctx, at)
}

// awaitClock waits for the clock, or for timestamps given out ahead of it, to get to at.
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

// landed waits until no commit at or below at is in flight, then lets visible reach at. at is at or below last.
func (o *Oracle) landed(ctx context.Context, at mvcc.Timestamp) error {
	for {
		o.mu.Lock()
		if o.failed != nil {
			defer o.mu.Unlock()
			return o.failed
		}
		if len(o.flights) == 0 || o.flights[0].ts > at {
			o.show(at)
			o.mu.Unlock()
			return nil
		}
		wake := o.flights[0].waiter()
		o.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waiter is closed when the flight is gone. The oracle's mu is held.
func (f *flight) waiter() chan struct{} {
	if f.wake == nil {
		f.wake = make(chan struct{})
	}
	return f.wake
}

// show moves visible forward, up to the durable bound: the timestamp of a commit that was abandoned may be above it. mu is held, so
// visible never goes back.
func (o *Oracle) show(at mvcc.Timestamp) {
	if at = min(at, mvcc.Timestamp(o.durable.Load())); at > o.Visible() {
		o.visible.Store(int64(at))
	}
}

// take gives out the next timestamp. The caller must land the flight.
func (o *Oracle) take() (*flight, error) {
	now := mvcc.TimestampOf(o.clock())
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil {
		return nil, o.failed
	}
	o.last = max(o.last+1, now)
	f := &flight{ts: o.last}
	// Every batch above the durable bound carries a bound of its own, for it may become durable without the others. One that comes near to the
	// bound carries the next, so that few are above it.
	durable := mvcc.Timestamp(o.durable.Load())
	near := f.ts+renewal > o.claimed
	if near {
		o.claimed = f.ts + reservation
	}
	if near || f.ts > durable {
		f.bound, f.old = o.claimed, durable
	}
	o.flights = append(o.flights, f)
	o.inFlight.Add(1)
	return f, nil
}

// commitAt runs fn, which commits one batch at a timestamp, or none if it fails, and returns when the timestamp is visible.
func (o *Oracle) commitAt(fn func(ts mvcc.Timestamp, commit func(kv.Batch) error) error) (err error) {
	f, err := o.take()
	if err != nil {
		return err
	}
	var written bool
	var committed error
	defer func() { // also if fn panics: it must not hold up every commit of the store
		landed := o.abandon
		if written {
			landed = func(f *flight) error { return o.land(f, committed) }
		}
		err = cmp.Or(err, landed(f))
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

// errCut is how a commit ended that has not returned: it panicked.
var errCut = errors.New("the commit was cut short")

// Take implements changestream.Oracle. The caller may hold a mutex that other commits wait for when it calls Take, but not when it lands the flight.
func (o *Oracle) Take(b kv.Batch) (mvcc.Timestamp, changestream.Flight, error) {
	f, err := o.take()
	if err != nil {
		return 0, nil, err
	}
	return f.ts, taken{o, f}, f.putReservation(b)
}

// taken is a flight that Take has given out.
type taken struct {
	o *Oracle
	f *flight
}

func (t taken) Land(committed error) error { return t.o.land(t.f, committed) }
func (t taken) Abandon() error             { return t.o.abandon(t.f) }

// abandon lands a flight of which nothing was written.
func (o *Oracle) abandon(f *flight) error {
	f.bound = 0
	return o.land(f, nil)
}

// land says how the commit of a flight ended: err is what Commit of its batch has returned. It returns when the commit is visible, which waits for
// those before it.
//
// Of a batch that the store has refused nothing was written. If the store failed it is unknown what it kept: no commit becomes visible any more, and
// every later one fails.
func (o *Oracle) land(f *flight, err error) error {
	if errors.Is(err, kv.ErrRefused) {
		return cmp.Or(o.abandon(f), err)
	}
	o.mu.Lock()
	f.done = true
	if err != nil && o.failed == nil {
		o.failed = fmt.Errorf("store failed during a commit: %w", err)
		o.wakeAll()
	}
	if o.failed != nil {
		defer o.mu.Unlock()
		return o.failed
	}
	if f.bound > mvcc.Timestamp(o.durable.Load()) {
		o.durable.Store(int64(f.bound))
	}
	o.advance()
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

// advance moves visible over the flights that are done. mu is held.
func (o *Oracle) advance() {
	n := 0
	for ; n < len(o.flights) && o.flights[n].done; n++ {
		f := o.flights[n]
		o.show(f.ts)
		f.gone = true
		if f.wake != nil {
			close(f.wake)
		}
	}
	o.flights = slices.Delete(o.flights, 0, n)
	o.inFlight.Add(int32(-n))
	if len(o.flights) == 0 {
		o.show(o.last)
	}
}

func (o *Oracle) wakeAll() {
	for _, f := range o.flights {
		if f.wake != nil {
			close(f.wake)
			f.wake = nil
		}
	}
}

// The bound is kept as keys without values in space 0, the highest of which counts: batches may be applied in
// another order than that of their timestamps.
const boundName = "txn/bound/"

func boundKey(bound mvcc.Timestamp) []byte {
	key := append(make([]byte, 4, 4+len(boundName)+9), boundName...)
	return append(binary.BigEndian.AppendUint64(key, uint64(bound)), 0)
}

// putReservation adds the reservation of a flight to its batch.
func (f *flight) putReservation(b kv.Batch) error {
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

// reserve makes the durable bound at least at, with a reservation above.
func (o *Oracle) reserve(at mvcc.Timestamp) error {
	if at <= mvcc.Timestamp(o.durable.Load()) {
		return nil
	}
	return o.extend(at, at+reservation)
}

// extend moves the durable bound to another one, unless it is at or above need.
func (o *Oracle) extend(need, to mvcc.Timestamp) error {
	o.reserving.Lock()
	defer o.reserving.Unlock()
	bound, old, err := o.claim(need, to)
	if bound <= old || err != nil {
		return err
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

// claim returns the durable bound, old, and the one that must take its place, or old again if that is at or above need. If a commit carries one that
// is high enough, it is that one: two would leave one behind, for a batch deletes the bound that was durable alone.
func (o *Oracle) claim(need, to mvcc.Timestamp) (bound, old mvcc.Timestamp, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old = mvcc.Timestamp(o.durable.Load()); need <= old {
		return old, old, nil
	}
	if o.failed != nil {
		return 0, 0, o.failed
	}
	if o.claimed < need {
		o.claimed = to
	}
	return o.claimed, old, nil
}

// readBound returns the highest bound of the store and deletes the others.
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
	if err := b.CommitNoSync(); err != nil && !errors.Is(err, kv.ErrRefused) { // the next start deletes them
		return 0, err
	}
	return bound, nil
}
