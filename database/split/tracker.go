package split

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// A Tracker records which splits one execution reads and writes, and how many rows in each. The execution reads and
// writes through the Tracker, which passes the calls on to its view or writer. Two kinds of executions have a Tracker:
// those that may read in several splits, whose remote calls are counted; and sampled ones, whose CPU time is charged to
// their splits (see Charge).
//
// The zero Tracker is inactive: it records nothing and returns views unchanged. Manager.Track activates it. A Tracker
// belongs to one goroutine.
type Tracker struct {
	splits *splits
	weight int64 // number of executions that this one stands for; 0: its splits are not charged
	view   table.View
	batch  table.BatchView // the field view as a BatchView; nil if the view is none
	writer table.Writer    // nil if the execution only reads
	calls  []call          // sorted by split
	last   int             // index, in the field calls, of the element that was used last

	room [4]call
}

// call records what an execution does in one split.
type call struct {
	split int
	read  bool // the execution reads in the split; if false, it only writes
	rows  int64
	// scanned is the number of rows that were read by scans. The field rows counts them, too.
	scanned int64
	// vote finds the row that is read or written most often. It is empty if the Tracker's weight is 0.
	vote
}

// Track makes t record an execution. weight is the number of similar executions that a sampled execution represents. If
// weight is 0, t records only the calls for RemoteCalls.
func (m *Manager) Track(t *Tracker, now time.Time, weight int64) {
	*t = Tracker{splits: m.at(now), weight: weight}
	t.calls = t.room[:0]
}

// Active reports whether the tracker records anything.
func (t *Tracker) Active() bool { return t.splits != nil }

// Sampled reports whether the execution is a sampled one, which represents others. If so, the caller must pass its CPU
// time to Charge.
func (t *Tracker) Sampled() bool { return t.weight > 0 }

// View returns the view through which the execution must read.
func (t *Tracker) View(view table.View) table.View {
	if !t.Active() {
		return view
	}
	t.view, t.writer = view, nil
	if batch, ok := view.(table.BatchView); ok {
		t.batch = batch
		return batchTracker{t}
	}
	return t
}

// Writer returns the writer through which the execution must read and write.
func (t *Tracker) Writer(w table.Writer) table.Writer {
	if !t.Active() {
		return w
	}
	t.view, t.writer = w, w
	return t
}

// RemoteCalls returns how many servers the execution would call if each split had a server of its own. That is the
// number of splits that it has read. But if it has read only one split, the number is 0, because that split's server
// would execute the statement itself. A published study saw 4 for a query over four splits of Cloud Spanner, and 0 for
// queries of one (Pablo Arrojo's comparison of SQL and READ). Crowfoot makes none of these calls, since one process
// serves all splits.
func (t *Tracker) RemoteCalls() int64 {
	n := int64(0)
	for i := range t.calls {
		if t.calls[i].read {
			n++
		}
	}
	if n == 1 {
		return 0
	}
	return n
}

// Wrote records a key that was written.
func (t *Tracker) Wrote(key []byte) { t.at(t.splits.of(key)).touch(t, key) }

// Get implements table.View.
func (t *Tracker) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	t.got(key)
	return t.view.Get(ctx, key, lock)
}

// got records the read of a single key.
func (t *Tracker) got(key []byte) {
	c := t.at(t.splits.of(key))
	c.read = true
	c.touch(t, key)
}

// batchTracker is a Tracker whose view is a table.BatchView. It implements table.BatchView itself.
type batchTracker struct{ *Tracker }

// Timestamp implements table.BatchView.
func (t batchTracker) Timestamp() mvcc.Timestamp { return t.batch.Timestamp() }

// ReadCopy records a read of spans from a columnar copy. The parameter rows is about how many rows the read returns.
// ReadCopy distributes this number equally over the splits of the spans.
func (t batchTracker) ReadCopy(spans []table.Span, rows int64) {
	var read []int
	for _, s := range table.Ranges(spans) {
		for split := t.splits.of(s.Start); split <= t.splits.before(s.End); split++ {
			if n := len(read); n == 0 || read[n-1] < split {
				read = append(read, split)
			}
		}
	}
	for i, split := range read {
		part := rows*int64(i+1)/int64(len(read)) - rows*int64(i)/int64(len(read))
		call := t.at(split)
		call.read = true
		call.rows += part
		call.scanned += part
	}
}

// GetEach implements table.BatchView.
func (t batchTracker) GetEach(ctx context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error {
	return t.batch.GetEach(ctx, keys, since, func(i int, val []byte, ok bool) bool {
		accepted := found(i, val, ok)
		if accepted {
			t.got(keys[i])
		}
		return accepted
	})
}

// Put implements table.Writer.
func (t *Tracker) Put(ctx context.Context, key, val []byte, pendingKey, pending []table.Pending) error {
	t.Wrote(key)
	return t.writer.Put(ctx, key, val, pendingKey, pending)
}

// Delete implements table.Writer.
func (t *Tracker) Delete(ctx context.Context, key []byte) error {
	t.Wrote(key)
	return t.writer.Delete(ctx, key)
}

// PutRun implements table.Writer.
func (t *Tracker) PutRun(ctx context.Context, r *table.Run, fresh bool) (existing []byte, err error) {
	for i := range r.Len() {
		t.Wrote(r.Key(i))
	}
	return t.writer.PutRun(ctx, r, fresh)
}

// Capture implements table.Writer.
func (t *Tracker) Capture(ctx context.Context, c *table.Change) (bytes int, err error) {
	return t.writer.Capture(ctx, c)
}

// at returns the call of a split, and adds one if there is none. The pointer is valid until the next call of at.
func (t *Tracker) at(split int) *call {
	if t.last < len(t.calls) && t.calls[t.last].split == split {
		return &t.calls[t.last]
	}
	i, found := slices.BinarySearchFunc(t.calls, split, func(c call, split int) int { return c.split - split })
	if !found {
		t.calls = slices.Insert(t.calls, i, call{split: split})
	}
	t.last = i
	return &t.calls[i]
}

// seed is the seed with which keys are hashed for votes.
var seed = maphash.MakeSeed()

func (c *call) touch(t *Tracker, key []byte) {
	c.rows++
	if t.weight > 0 {
		c.vote.add(maphash.Bytes(seed, key), 1)
	}
}

// Scan implements table.View.
func (t *Tracker) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	inner, err := t.view.Scan(ctx, span, opts)
	if err != nil {
		return nil, err
	}
	c := &trackingCursor{Cursor: inner, tracker: t, reverse: opts.Reverse, split: t.splits.of(span.Start), end: t.splits.before(span.End)}
	if c.reverse {
		c.split, c.end = c.end, c.split
	}
	t.at(c.split).read = true
	return c, nil
}

// trackingCursor is a cursor that records the rows of a scan and the splits through which it moves.
type trackingCursor struct {
	table.Cursor
	tracker *Tracker
	reverse bool
	split   int   // the split in which the cursor is
	end     int   // the last split that the scan reaches
	rows    int64 // rows of the current split that are not yet added to the tracker
}

// votedRows is how many rows of a scan vote in each split. Later rows of the scan need not vote: in a scan of more
// rows, no single row causes most of the load.
const votedRows = 64

func (c *trackingCursor) Next() bool {
	if !c.Cursor.Next() {
		c.tell()
		if c.Err() == nil {
			c.goTo(c.end)
		}
		return false
	}
	t := c.tracker
	if len(t.splits.bounds) > 0 || t.weight > 0 && c.rows < votedRows {
		c.visit(c.Key())
	}
	c.rows++
	return true
}

// visit moves the cursor to the split of a key. If the execution is a sampled one, it also adds the key's vote, for the
// first votedRows rows in the split.
func (c *trackingCursor) visit(key []byte) {
	t := c.tracker
	if !t.splits.holds(c.split, key) {
		c.tell()
		c.goTo(t.splits.of(key))
	}
	if t.weight > 0 && c.rows < votedRows {
		t.at(c.split).vote.add(maphash.Bytes(seed, key), 1)
	}
}

// tell adds to the tracker the number of rows that the cursor has counted in its current split.
func (c *trackingCursor) tell() {
	at := c.tracker.at(c.split)
	at.rows += c.rows
	at.scanned += c.rows
	c.rows = 0
}

// Release releases the resources that the wrapped cursor holds, if that cursor has a method Release. See table.Rows.
func (c *trackingCursor) Release() {
	if below, ok := c.Cursor.(interface{ Release() }); ok {
		below.Release()
	}
}

// Close implements table.Cursor.
func (c *trackingCursor) Close() error {
	c.tell()
	return c.Cursor.Close()
}

// goTo moves the cursor to another split, and records that this split and all splits on the way are read.
func (c *trackingCursor) goTo(split int) {
	step := 1
	if c.reverse {
		step = -1
	}
	for c.split != split {
		c.split += step
		c.tracker.at(c.split).read = true
	}
}
