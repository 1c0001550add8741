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

// Read describes a read of rows of a table, or entries of an index, as columns in key order.
type Read struct {
	*table.Projection
	Spans []table.Span   // sorted and disjoint, as table.Layout.Spans makes them; may include points, single keys
	At    mvcc.Timestamp // the timestamp of the snapshot that the parameter view of Copy.Open reads
	// Memory is the request's memory account. The Reader charges nothing to this account: it opens accounts of its own
	// in the same budget, and charges those. If Memory is nil, the Reader charges no account.
	Memory *memory.Account
}

// Reader returns the rows of a Read in runs. A run is a number of consecutive rows, with one array for each column.
// Only one goroutine may use a Reader.
type Reader struct {
	ctx  context.Context
	copy *Copy // nil if there is no copy
	view table.View
	read Read
	dir  *directory

	segments []segment   // segments not yet begun
	merge    *merge      // reads the current segment, if that has a chunk
	rows     *table.Rows // reads the current segment, if that has no chunk
	fill     int         // how many bytes of rows the next read from the table takes

	batch     *columnar.Batch // rows that were read from the table or merged, for the next run; nil at first
	batchRows int
	arrays    []arrow.Array  // the arrays of the current run, one for each column
	columns   *chunkColumns  // the columns of the current chunk; nil before the first chunk, as is the field decoder
	decoder   *table.Decoder // decodes changed rows

	memory  *memory.Account
	charged int64
	done    bool
	err     error
}

// A segment is a part of a read whose rows come from one chunk, or from the table if chunk is nil.
type segment struct {
	chunk *chunk
	spans []table.Span // ranges of keys; the points of the Read, its single keys, were replaced by ranges
}

// Open begins a read. The caller must close the Reader. If c is nil, there is no copy, and all rows are read from the
// table.
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

// plan divides the spans of a read into segments. It does not use chunks whose timestamp is below the horizon, the
// oldest timestamp at which the database can be read.
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

// wanted identifies a column that a read needs, or may need.
type wanted struct {
	id         schema.ColumnID
	definition string
}

// wantedOf returns the columns that a projection reads and the columns of its key.
func wantedOf(p *table.Projection) (list []wanted) {
	for _, c := range p.Columns {
		list = append(list, wanted{c.ID, c.ComputedFrom()})
	}
	for _, k := range p.Key {
		list = append(list, wanted{k.Column.ID, k.Column.ComputedFrom()})
	}
	return list
}

// has reports whether the chunk has all columns in list and no known damage.
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

// Estimate estimates how many rows a Read would read. It is made from the list of the chunks, without reading them.
type Estimate struct {
	Chunks int
	Rows   int64 // estimated number of rows in the spans of the read that come from chunks, without later changes
	// Whole is the number of rows of the chunks that lie completely in the spans. Partial is the number of all rows of
	// the other chunks, in the spans or not.
	Whole, Partial int64
	Rest           []table.Span // ranges that must be read from the table
}

// Estimate returns an estimate for a Read. If c is nil, there are no chunks.
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
	// How many of the e.Partial rows are in the spans is unknown without reading their keys. Half of them is a guess.
	e.Rows = e.Whole + e.Partial/2
	return e
}

// within reports whether all rows of the chunk's blobs lie in the span s.
func (c *chunk) within(s table.Span) bool {
	return !c.startCut && bytes.Compare(s.Start, c.start) <= 0 && bytes.Compare(c.end, s.End) <= 0
}

// firstFill and fullFill are numbers of bytes. The first read from the table takes firstFill bytes of rows. Each
// further read takes twice as many, up to fullFill.
const (
	firstFill = 32 << 10
	fullFill  = 1 << 20
)

// Next moves to the next run of rows and returns the number of its rows, or 0 at the end.
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

// Array returns column i of the run. It is valid until the next call of Next. The array's type is the one that
// value/columnar uses without Options. If that type cannot hold all values of the column's type, the array may instead
// hold values in the form in which rows store them (see columnar.IsStored).
func (r *Reader) Array(i int) arrow.Array { return r.arrays[i] }

// step continues with the current segment, or begins the next one. It may return 0 rows before the end.
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
		// The changes since the chunk's timestamp were collected during the read. So the remaining ranges are read from
		// the table, where the versions at the read's timestamp may still exist.
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

// emptyBatch removes the rows from the batch. If there is no batch yet, it makes one.
func (r *Reader) emptyBatch() {
	if r.batch == nil {
		r.batch = batchOf(r.read.Columns)
	}
	r.batch.Reset()
	r.batchRows = 0
}

// flush turns the rows of the batch into the current run, which Next returns. It returns the number of these rows.
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

// slice turns the rows [from, to) of the chunk into the current run, which Next returns. It returns the number of these
// rows.
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

// charge charges the memory that the Reader holds now, if that is more than what was charged before.
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

// Release closes the Reader's iterator in the storage engine. Call it before a long wait. The current run stays valid,
// and Next continues after it.
func (r *Reader) Release() {
	switch {
	case r.merge != nil:
		r.merge.changes.Release()
	case r.rows != nil:
		r.rows.Release()
	}
}

// Close ends the read. The arrays of the last run are no longer valid.
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
