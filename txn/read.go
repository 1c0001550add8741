package txn

import (
	"context"
	"errors"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Request is a table.Writer on a transaction for one goroutine. A value that Get returns is valid until the next Get
// of the same Request.
type Request struct {
	*Tx
	// DML says that the request is a DML statement. In RepeatableRead, the rows that it reads are then locked
	// exclusively, or validated at commit, as if they were read FOR UPDATE.
	DML bool
	// mutates says that the request applies the mutations of a Commit, which has closed the transaction to all other
	// requests.
	mutates bool
	charged *memory.Account // the account of the memory that the request uses outside the transaction; nil if not known
	buf     []byte
	encoder *changestream.Encoder // encodes row changes for change streams; nil before the first such change
}

// Request returns a new Request on t.
func (t *Tx) Request() *Request { return &Request{Tx: t} }

// enter does what Enter does, but also lets Commit's own request in after Commit has closed the transaction.
func (r *Request) enter() error {
	if r.mutates {
		return r.Tx.enter()
	}
	return r.Tx.Enter()
}

func (r *Request) lock(lock table.Lock) table.Lock {
	if r.DML && lock == table.LockShared && r.opts.Isolation == RepeatableRead {
		return table.LockExclusive
	}
	return lock
}

// Get implements table.View.
func (t *Tx) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	return t.Request().Get(ctx, key, lock)
}

// Get implements table.View.
func (r *Request) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	if err := r.enter(); err != nil {
		return nil, false, err
	}
	defer r.Leave()
	if val, ok, err = r.get(ctx, key, lock); ok {
		r.buf = val
	}
	return val, ok, err
}

func (r *Request) get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	name := string(key)
	at, _, err := r.protect(ctx, name, "", lock)
	if err != nil {
		return nil, false, err
	}
	if w, written := r.written(name); written {
		return append(r.buf[:0], w.val...), !w.deleted, nil
	}
	val, _, ok, err = r.m.versions.Get(key, at, r.buf)
	if err != nil {
		return nil, false, r.storeError(err)
	}
	// While the version was read, the transaction may have been aborted and lost its locks. Then the read is not
	// valid.
	return val, ok, r.check()
}

func (t *Tx) written(key string) (write, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unpackRun()
	return t.writes.Get(key)
}

// storeError aborts t if err is ErrCollected: the versions at t's read timestamp may be deleted, and a retry reads at
// a newer timestamp.
func (t *Tx) storeError(err error) error {
	if errors.Is(err, mvcc.ErrCollected) {
		return t.abort(AbortExpired)
	}
	return err
}

// readSpan is a point (end is empty) or range that was read. Commit checks that no other transaction has written there
// since the snapshot.
type readSpan struct{ start, end string }

// protect prepares the read of a point (end is empty) or a range. Depending on the isolation mode, it locks the point
// or range, or adds it to the spans that Commit validates, or does neither. It returns the timestamp to read at, and
// the span that Commit validates, or nil.
func (r *Request) protect(ctx context.Context, start, end string, lock table.Lock) (at mvcc.Timestamp, span *readSpan, err error) {
	if at, err = r.readTimestamp(ctx); err != nil {
		return 0, nil, err
	}
	lock = r.lock(lock)
	switch r.protection(lock) {
	case unprotected:
		return at, nil, nil
	case validated:
		span = &readSpan{start, end}
		return at, span, r.validateLater(span)
	}
	if err := r.m.locks.acquire(ctx, r.Tx, start, end, lockMode(lock)); err != nil {
		return 0, nil, err
	}
	return at, nil, r.unchanged(start, end)
}

// validateLater adds a span, which is about to be read, to the spans that Commit validates. It returns an error once
// Commit was called.
func (r *Request) validateLater(span *readSpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() && !r.mutates {
		return usererror.CommitCalled()
	}
	r.reads = append(r.reads, span)
	return nil
}

// protection says how a transaction makes sure that what it has read is still valid at the commit.
type protection uint8

const (
	locked      protection = iota
	validated              // Commit checks that the data read has not changed
	unprotected            // the read need only be valid at the snapshot
)

func (r *Request) protection(lock table.Lock) protection {
	switch {
	case lock == table.LockWriterSharedTimestamp:
		return unprotected // the key gets this commit's timestamp, so no other transaction can write it
	case r.opts.Isolation == RepeatableRead && lock == table.LockShared && !r.mutates:
		return unprotected
	case !r.locksNow:
		return validated
	}
	return locked
}

func lockMode(lock table.Lock) table.Lock {
	if lock == table.LockExclusive {
		return table.LockExclusive
	}
	return table.LockShared
}

// readTimestamp returns the timestamp at which the transaction reads: that of its snapshot, or Latest if it has none.
func (t *Tx) readTimestamp(ctx context.Context) (mvcc.Timestamp, error) {
	if !t.snapshots {
		return mvcc.Latest, nil
	}
	return t.snapshot(ctx)
}

// snapshot returns the timestamp at which all reads of the transaction read. The first call chooses the timestamp.
func (t *Tx) snapshot(ctx context.Context) (mvcc.Timestamp, error) {
	for {
		if at := t.snapshotAt(); at != 0 {
			return at, nil
		}
		catalog := t.m.schema.catalog.Load() // loaded first, so it is not newer than the snapshot
		at, err := t.m.oracle.Strong(ctx)
		if err != nil {
			return 0, err
		}
		t.m.locks.mu.Lock()
		t.mu.Lock()
		if t.readAt == 0 && t.m.schema.catalog.Load() == catalog { // else the loop tries again
			t.readAt, t.readCatalog = at, catalog
		}
		t.mu.Unlock()
		t.m.locks.mu.Unlock()
	}
}

// snapshotAt returns the timestamp of the transaction's snapshot; 0 if the transaction has no snapshot, or has not
// chosen it yet.
func (t *Tx) snapshotAt() mvcc.Timestamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readAt
}

// unchanged aborts t if another transaction has written in a span since t's snapshot. The caller has locked the span
// for t. Without a snapshot unchanged does nothing, because t then reads the newest versions.
func (t *Tx) unchanged(start, end string) error {
	since := t.snapshotAt()
	if since == 0 {
		return nil
	}
	var changed bool
	var err error
	if end == "" {
		changed, err = t.m.versions.KeyChangedSince([]byte(start), since)
	} else {
		changed, err = t.m.versions.ChangedSince([]byte(start), []byte(end), since)
	}
	if err != nil {
		return t.storeError(err)
	}
	if changed {
		return t.abort(AbortConflict)
	}
	return nil
}

// abort aborts t on behalf of one of its own requests, unless t has ended or is being committed. It returns the error
// that further requests return.
func (t *Tx) abort(reason AbortReason) error {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == active {
		t.m.locks.abort(t, reason)
	}
	return t.check()
}

// Scan implements table.View.
func (t *Tx) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	return t.Request().Scan(ctx, span, opts)
}

// Scan implements table.View.
func (r *Request) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	c, err := r.scan(ctx, span, opts)
	if err != nil {
		r.Leave()
		return nil, err
	}
	return c, nil // Close of the cursor calls Leave
}

func (r *Request) scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	c := &cursor{t: r.Tx, start: string(span.Start), end: string(span.End), reverse: opts.Reverse}
	if c.end == "" {
		c.end = maxKey
	}
	if c.start >= c.end {
		return &cursor{t: r.Tx, ended: true}, nil
	}
	var err error
	if lock := r.lock(opts.Lock); opts.Partial && r.protection(lock) == locked {
		c.at, err = r.readTimestamp(ctx)
		c.growing = &scanLock{ctx: ctx, mode: lockMode(lock), start: c.start, end: c.end}
	} else {
		c.at, c.span, err = r.protect(ctx, c.start, c.end, opts.Lock)
	}
	if err != nil {
		return nil, err
	}
	if err := c.open(c.start, c.end); err != nil {
		return nil, err
	}
	return c, nil
}
