package txn

import (
	"context"
	"errors"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Request is a table.Writer on a transaction for one goroutine: what its Get returns is its own.
type Request struct {
	*Tx
	// DML says that the request is a DML statement: in RepeatableRead, what it reads is locked exclusively, or
	// validated at commit, as if read FOR UPDATE.
	DML bool
	buf []byte
}

// Request returns a view of its own for one request.
func (t *Tx) Request() *Request { return &Request{Tx: t} }

func (r *Request) lock(lock table.Lock) table.Lock {
	if r.DML && lock == table.LockShared && r.opts.Isolation == RepeatableRead {
		return table.LockExclusive
	}
	return lock
}

// Get implements table.View.
func (r *Request) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	val, ok, err = r.get(ctx, key, r.lock(lock), r.buf)
	if ok {
		r.buf = val
	}
	return val, ok, err
}

// Scan implements table.View.
func (r *Request) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	opts.Lock = r.lock(opts.Lock)
	return r.Tx.Scan(ctx, span, opts)
}

// Get implements table.View.
func (t *Tx) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	t.mu.Lock()
	buf := t.buf
	t.buf = nil
	t.mu.Unlock()
	val, ok, err = t.get(ctx, key, lock, buf)
	if ok {
		t.mu.Lock()
		t.buf = val
		t.mu.Unlock()
	}
	return val, ok, err
}

func (t *Tx) get(ctx context.Context, key []byte, lock table.Lock, buf []byte) (val []byte, ok bool, err error) {
	if err := t.Enter(ctx); err != nil {
		return nil, false, err
	}
	defer t.Leave()
	name := string(key)
	at, _, err := t.protect(ctx, name, "", lock)
	if err != nil {
		return nil, false, err
	}
	if w, written := t.written(name); written {
		return append(buf[:0], w.val...), !w.deleted, nil
	}
	val, _, ok, err = t.m.versions.Get(key, at, buf)
	if err != nil {
		return nil, false, t.storeError(err)
	}
	// Locks may have been lost while it was read.
	return val, ok, t.check()
}

func (t *Tx) written(key string) (write, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes.Get(key)
}

// storeError tells a read-write transaction that has outlived the versions it reads to start again.
func (t *Tx) storeError(err error) error {
	if errors.Is(err, mvcc.ErrCollected) {
		return usererror.SnapshotExpired(t.backoff())
	}
	return err
}

// readSpan is a point (end is empty) or range that was read at readAt and must not have changed at commit.
type readSpan struct{ start, end string }

// protect does what the isolation mode wants before a point (end is empty) or a
// range is read, and returns the timestamp to read at, and what commit will
// validate, if anything.
func (t *Tx) protect(ctx context.Context, start, end string, lock table.Lock) (at mvcc.Timestamp, span *readSpan, err error) {
	if at, err = t.readTimestamp(ctx); err != nil {
		return 0, nil, err
	}
	switch t.protection(lock) {
	case unprotected:
		return at, nil, nil
	case validated:
		span = &readSpan{start, end}
		t.mu.Lock()
		t.reads = append(t.reads, span)
		t.mu.Unlock()
		return at, span, nil
	}
	if err := t.m.locks.acquire(ctx, t, start, end, lockMode(lock)); err != nil {
		return 0, nil, err
	}
	return at, nil, t.unchanged(start, end)
}

// protection is what becomes of something that is read.
type protection uint8

const (
	locked      protection = iota
	validated              // at commit
	unprotected            // seen at the snapshot and not watched further
)

func (t *Tx) protection(lock table.Lock) protection {
	switch {
	case t.opts.Isolation == RepeatableRead && lock == table.LockShared && !t.applyingNow():
		return unprotected
	case !t.locksNow:
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

// readTimestamp is what the transaction reads at: its snapshot, or whatever is newest.
func (t *Tx) readTimestamp(ctx context.Context) (mvcc.Timestamp, error) {
	if !t.snapshots {
		return mvcc.Latest, nil
	}
	return t.snapshot(ctx)
}

func (t *Tx) applyingNow() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applying
}

// snapshot fixes, at the first read, the timestamp that all reads see.
func (t *Tx) snapshot(ctx context.Context) (mvcc.Timestamp, error) {
	t.mu.Lock()
	at := t.readAt
	t.mu.Unlock()
	if at != 0 {
		return at, nil
	}
	at, err := t.m.oracle.Strong(ctx)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readAt == 0 {
		t.readAt = at
	}
	return t.readAt, nil
}

// unchanged aborts t if what it has just locked was written since its snapshot. Without a snapshot there is nothing to compare.
func (t *Tx) unchanged(start, end string) error {
	t.mu.Lock()
	since := t.readAt
	t.mu.Unlock()
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
		return t.conflict()
	}
	return nil
}

// conflict ends t because of what others committed.
func (t *Tx) conflict() error {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == active {
		t.m.locks.abort(t, AbortConflict)
	}
	return t.err
}

// Scan implements table.View.
func (t *Tx) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	if err := t.Enter(ctx); err != nil {
		return nil, err
	}
	c, err := t.scan(ctx, span, opts)
	if err != nil {
		t.Leave()
		return nil, err
	}
	return c, nil // its Close leaves
}

func (t *Tx) scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	c := &cursor{t: t, start: string(span.Start), end: string(span.End), reverse: opts.Reverse}
	if c.end == "" {
		c.end = maxKey
	}
	if c.start >= c.end {
		return &cursor{t: t, ended: true}, nil
	}
	var err error
	if opts.Partial && t.protection(opts.Lock) == locked {
		c.at, err = t.readTimestamp(ctx)
		c.growing = &scanLock{ctx: ctx, mode: lockMode(opts.Lock), start: c.start, end: c.end}
	} else {
		c.at, c.span, err = t.protect(ctx, c.start, c.end, opts.Lock)
	}
	if err != nil {
		return nil, err
	}
	if err := c.open(c.start, c.end); err != nil {
		return nil, err
	}
	return c, nil
}
