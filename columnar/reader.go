package columnar

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// Read is rows of a table or entries of an index that are wanted as columns, in key order.
type Read struct {
	*table.Projection
	Spans []table.Span   // sorted and disjoint, as table.Layout.Spans makes them; points among them
	At    mvcc.Timestamp // that the view reads at, a snapshot's
	// Memory is an account of the request. The Reader charges what it holds to others beside it; nil counts nothing.
	Memory *memory.Account
}

// Reader gives the rows of a Read in runs. It serves one goroutine.
type Reader struct {
	ctx  context.Context
	copy *Copy // nil: there is none
	view table.View
	read Read
	dir  *directory

	segments []segment // that are left
	merge    *merge    // of the current segment, if it is a chunk
	rows     *table.Rows
	fill     int // bytes of rows that are read together next

	batch     *columnar.Batch // rows that were decoded or merged; nil before the first
	batchRows int
	arrays    []arrow.Array  // of the run
	columns   *chunkColumns  // of the current chunk; nil before the first, as is decoder
	decoder   *table.Decoder // of what has changed

	memory  *memory.Account
	charged int64
	done    bool
	err     error
}

// A segment is what is read in one way: from a chunk, or, where chunk is nil, from rows.
type segment struct {
	chunk *chunk
	spans []table.Span // ranges
}

// Open begins a read. Its Reader must be closed. A nil Copy has no chunks: all is read from rows.
func (c *Copy) Open(ctx context.Context, view table.View, read Read) *Reader {
	r := &Reader{ctx: ctx, copy: c, view: view, read: read, arrays: make([]arrow.Array, len(read.Columns)), fill: firstFill, memory: read.Memory.Beside(memory.Stream)}
	if c == nil {
		r.segments = []segment{{spans: table.Ranges(read.Spans)}}
		return r
	}
	r.dir = c.acquire()
	r.segments = r.dir.plan(read, c.rows.Horizon())
	return r
}

// plan divides the spans of a read among chunks and rows.
func (d *directory) plan(read Read, horizon mvcc.Timestamp) []segment {
	var list []segment
	wanted := wantedOf(read.Projection)
	add := func(c *chunk, s table.Span) {
		if n := len(list); n == 0 || list[n-1].chunk != c {
			list = append(list, segment{chunk: c})
		}
		last := &list[len(list)-1]
		if n := len(last.spans); c == nil && n > 0 && bytes.Equal(last.spans[n-1].End, s.Start) {
			last.spans[n-1].End = s.End
			return
		}
		last.spans = append(last.spans, s)
	}
	for _, s := range table.Ranges(read.Spans) {
		for _, c := range d.covering(s.Start, s.End) {
			if bytes.Compare(s.Start, c.start) < 0 {
				add(nil, table.Span{Start: s.Start, End: c.start})
				s.Start = c.start
			}
			part := table.Span{Start: s.Start, End: minBound(s.End, c.end)}
			if c.at < horizon || c.at > read.At || !c.has(wanted) {
				add(nil, part)
			} else {
				add(c, part)
			}
			s.Start = part.End
		}
		if bytes.Compare(s.Start, s.End) < 0 {
			add(nil, s)
		}
	}
	return list
}

func minBound(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

// wanted is a column that a read needs, or may need.
type wanted struct {
	id         schema.ColumnID
	definition string
}

// wantedOf are the columns of a projection and those of its key.
func wantedOf(p *table.Projection) (list []wanted) {
	for _, c := range p.Columns {
		list = append(list, wanted{c.ID, c.ComputedFrom()})
	}
	for _, k := range p.Key {
		list = append(list, wanted{k.Column.ID, k.Column.ComputedFrom()})
	}
	return list
}

// has says whether the chunk has columns, and can be read.
func (c *chunk) has(list []wanted) bool {
	if c.damaged.Load() {
		return false
	}
	for _, w := range list {
		if c.rows > 0 && c.column(w) == nil {
			return false
		}
	}
	return true
}

// Estimate is what a Read would read, as far as the directory tells.
type Estimate struct {
	Chunks int
	Rows   int64 // in these chunks, of the spans of the read; without what has changed since
	// Whole is how many rows the chunks have that lie in the spans as a whole, and Partial how many the others have, in the spans or not.
	Whole, Partial int64
	Rest           []table.Span // ranges that no chunk serves: rows are read there
}

// Estimate looks at what a Read would read. A nil Copy has no chunks.
func (c *Copy) Estimate(read Read) (e Estimate) {
	if c == nil {
		e.Rest = table.Ranges(read.Spans)
		return e
	}
	c.mu.Lock()
	dir := c.dir
	c.mu.Unlock()
	for _, s := range dir.plan(read, c.rows.Horizon()) {
		if s.chunk == nil {
			e.Rest = append(e.Rest, s.spans...)
			continue
		}
		e.Chunks++
		if s.chunk.within(s.spans[0]) {
			e.Whole += s.chunk.rows
		} else {
			e.Partial += s.chunk.rows
		}
	}
	e.Rows = e.Whole + e.Partial/2 // how many of the latter is unknown without reading keys
	return e
}

// within says whether all rows of the blobs lie in a span.
func (c *chunk) within(s table.Span) bool {
	return !c.startCut && bytes.Compare(s.Start, c.start) <= 0 && bytes.Compare(c.end, s.End) <= 0
}

// Rows are read from the table firstFill bytes at a time first, and each time twice as many up to fullFill.
const (
	firstFill = 32 << 10
	fullFill  = 1 << 20
)

// Next moves to the next run, and returns how many rows it has: 0 at the end, and at most MaxRows.
func (r *Reader) Next() (n int, err error) {
	if r.done || r.err != nil {
		return 0, r.err
	}
	for {
		if r.err = r.ctx.Err(); r.err == nil {
			n, r.err = r.step()
		}
		if n > 0 || r.done || r.err != nil {
			return n, r.err
		}
	}
}

// Array is column i of the run, of one of Arrow's types of value/columnar without Options, or of stored payloads (columnar.IsStored), which is never so
// for a type all of whose values its Arrow type can hold. It is good until the next Next.
func (r *Reader) Array(i int) arrow.Array { return r.arrays[i] }

// step goes on with the current segment, or begins the next. It may find no rows.
func (r *Reader) step() (n int, err error) {
	switch {
	case r.merge != nil:
		return r.stepChunk()
	case r.rows != nil:
		return r.stepRows()
	case len(r.segments) == 0:
		r.done = true
		return 0, nil
	}
	s := r.segments[0]
	r.segments = r.segments[1:]
	if s.chunk == nil {
		r.rows = table.Read{Projection: r.read.Projection, Spans: s.spans, Memory: r.read.Memory}.Open(r.ctx, r.view)
		return 0, nil
	}
	r.merge, err = r.openMerge(s)
	if errors.Is(err, mvcc.ErrCollected) {
		r.segments = slices.Insert(r.segments, 0, segment{spans: s.spans})
		return 0, nil
	}
	return 0, err
}

func (r *Reader) stepChunk() (n int, err error) {
	n, more, err := r.merge.next()
	if errors.Is(err, mvcc.ErrCollected) {
		// The rest is read from rows, which may be there yet.
		r.segments = slices.Insert(r.segments, 0, segment{spans: r.merge.left()})
		more, err = false, nil
		n = r.merge.flush()
	}
	if err != nil {
		return 0, err
	}
	if !more {
		err = r.merge.close()
		r.merge = nil
	}
	return n, err
}

func (r *Reader) stepRows() (n int, err error) {
	r.emptyBatch()
	n, err = r.rows.Fill(r.batch.Columns, r.fill)
	r.fill = min(2*r.fill, fullFill)
	if err == nil && n == 0 {
		err = r.rows.Close()
		r.rows = nil
	}
	if err == nil {
		err = r.charge()
	}
	if err != nil {
		return 0, err
	}
	r.batchRows = n
	return r.flush(), nil
}

// emptyBatch makes room for rows that are decoded.
func (r *Reader) emptyBatch() {
	if r.batch == nil {
		r.batch = batchOf(r.read.Columns)
	}
	r.batch.Reset()
	r.batchRows = 0
}

// flush makes the rows of the batch the run.
func (r *Reader) flush() (n int) {
	if n = r.batchRows; n == 0 {
		return 0
	}
	for i := range r.arrays {
		r.arrays[i] = r.batch.Array(i)
	}
	r.batchRows = 0
	return n
}

// slice makes rows of the chunk the run.
func (r *Reader) slice(from, to int) (n int) {
	for i := range r.arrays {
		a := r.columns.wanted[i]
		if from > 0 || to < a.Len() {
			a = array.NewSlice(a, int64(from), int64(to))
		}
		r.arrays[i] = a
	}
	return to - from
}

// charge charges what the Reader holds by now.
func (r *Reader) charge() error {
	size := int64(0)
	if r.batch != nil {
		size += r.batch.Size()
	}
	if r.columns != nil {
		size += r.columns.size()
	}
	if size <= r.charged {
		return nil
	}
	err := r.memory.Grow(r.ctx, size-r.charged)
	if err == nil {
		r.charged = size
	}
	return err
}

// Release lets go of what the storage engine holds for the Reader, which is about to wait for long. The run stays good, and Next goes on behind it.
func (r *Reader) Release() {
	switch {
	case r.merge != nil:
		r.merge.changes.Release()
	case r.rows != nil:
		r.rows.Release()
	}
}

// Close ends the read. The run is no longer good.
func (r *Reader) Close() error {
	var err error
	if r.merge != nil {
		err = r.merge.close()
	}
	if r.rows != nil {
		err = errors.Join(err, r.rows.Close())
	}
	if r.dir != nil {
		r.copy.release(r.dir)
	}
	r.merge, r.rows, r.dir, r.done = nil, nil, nil, true
	r.memory.Close()
	return err
}
