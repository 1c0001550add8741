package database

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
)

// A Visit notes which splits one execution goes to, and what it does there. It stands between
// the execution and its view, for executions of which somebody wants to know: those that may read in
// several splits, for the calls that they would make, and those that stand for others in what splits have to do (see Charge).
//
// A Visit that was not begun notes nothing and hands out views as they are.
type Visit struct {
	splits *splits
	weight int64 // how many executions it stands for; 0: nothing is charged
	view   table.View
	writer table.Writer // nil if it only reads
	calls  []call       // by split
	last   int          // index of the latest of them

	room [4]call
}

// call is what an execution does in one split.
type call struct {
	split int
	read  bool // else it only writes
	rows  int64
	// scanned is how many of the rows it came to on its way over a range.
	scanned int64
	// vote is over the rows: one of them is the candidate, its lead what the others have left it of its votes. Only kept with a weight.
	vote
}

// Visit begins a visit, of one execution or of weight ones that are like it.
func (d *Database) Visit(v *Visit, now time.Time, weight int64) {
	*v = Visit{splits: d.splits(now), weight: weight}
	v.calls = v.room[:0]
}

// IsSplit says whether the database has more than one split.
func (d *Database) IsSplit(now time.Time) bool { return len(d.splits(now).bounds) > 0 }

// Begun says whether anything is noted.
func (v *Visit) Begun() bool { return v.splits != nil }

// Sampled says that the visit stands for others.
func (v *Visit) Sampled() bool { return v.weight > 0 }

// View is what the execution reads, through the visit.
func (v *Visit) View(view table.View) table.View {
	if !v.Begun() {
		return view
	}
	v.view, v.writer = view, nil
	return v
}

// Writer is what the execution reads and writes, through the visit.
func (v *Visit) Writer(w table.Writer) table.Writer {
	if !v.Begun() {
		return w
	}
	v.view, v.writer = w, w
	return v
}

// RemoteCalls is how many splits were read beyond the first: so many calls would the server of that make. One process serves
// all splits, so they are calls that it need not make.
func (v *Visit) RemoteCalls() int64 {
	n := int64(0)
	for i := range v.calls {
		if v.calls[i].read {
			n++
		}
	}
	return max(n-1, 0)
}

// Wrote notes a key that was written.
func (v *Visit) Wrote(key []byte) { v.at(v.splits.of(key)).touch(v, key) }

// Get implements table.View.
func (v *Visit) Get(ctx context.Context, key []byte, lock table.Lock) (val []byte, ok bool, err error) {
	c := v.at(v.splits.of(key))
	c.read = true
	c.touch(v, key)
	return v.view.Get(ctx, key, lock)
}

// Put implements table.Writer.
func (v *Visit) Put(ctx context.Context, key, val []byte, pendingKey, pending []table.Pending) error {
	v.Wrote(key)
	return v.writer.Put(ctx, key, val, pendingKey, pending)
}

// Delete implements table.Writer.
func (v *Visit) Delete(ctx context.Context, key []byte) error {
	v.Wrote(key)
	return v.writer.Delete(ctx, key)
}

// at is the call to a split; it is good until the next.
func (v *Visit) at(split int) *call {
	if v.last < len(v.calls) && v.calls[v.last].split == split {
		return &v.calls[v.last]
	}
	i, found := slices.BinarySearchFunc(v.calls, split, func(c call, split int) int { return c.split - split })
	if !found {
		v.calls = slices.Insert(v.calls, i, call{split: split})
	}
	v.last = i
	return &v.calls[i]
}

// seed is of the hashes that tell rows apart.
var seed = maphash.MakeSeed()

func (c *call) touch(v *Visit, key []byte) {
	c.rows++
	if v.weight > 0 {
		c.vote.add(maphash.Bytes(seed, key), 1)
	}
}

// Scan implements table.View.
func (v *Visit) Scan(ctx context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	inner, err := v.view.Scan(ctx, span, opts)
	if err != nil {
		return nil, err
	}
	c := &visitCursor{Cursor: inner, visit: v, reverse: opts.Reverse, split: v.splits.of(span.Start), end: v.splits.before(span.End)}
	if c.reverse {
		c.split, c.end = c.end, c.split
	}
	v.at(c.split).read = true
	return c, nil
}

// visitCursor notes the rows of a range, and the splits that it passes on its way.
type visitCursor struct {
	table.Cursor
	visit   *Visit
	reverse bool
	split   int // where it is
	end     int // the last split of the range
}

func (c *visitCursor) Next() bool {
	if !c.Cursor.Next() {
		if c.Err() == nil {
			c.goTo(c.end)
		}
		return false
	}
	key := c.Key()
	if !c.visit.splits.holds(c.split, key) {
		c.goTo(c.visit.splits.of(key))
	}
	at := c.visit.at(c.split)
	at.touch(c.visit, key)
	at.scanned++
	return true
}

// goTo passes over the splits up to one that it may be in already.
func (c *visitCursor) goTo(split int) {
	step := 1
	if c.reverse {
		step = -1
	}
	for c.split != split {
		c.split += step
		c.visit.at(c.split).read = true
	}
}
