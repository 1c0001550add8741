package exec

import (
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// The first batches of an operator are small, so that a query that needs only one row does not compute a thousand.
// Later batches are larger, so that many rows share the cost of one call of next. Under a LIMIT the first batch has one
// row: a read-write transaction locks every row that it reads, so it should read no row that the LIMIT then drops. The
// constants are numbers of rows.
const (
	firstBatch   = 16
	fullBatch    = 512
	limitedBatch = 1
	// columnBatch is the greatest number of rows of a batch of columns. It is so small that the vectors of a query
	// stay in the processor's cache.
	columnBatch = 1024
)

// batch holds rows in one of two forms. Flat rows lie in one slice: row i is vals[i*width : (i+1)*width]. A batch
// of columns has one fn.Column for each column, in cols. These columns can also contain rows that were dropped: batch.at
// lists the indexes of the rows that are still in the batch. Such an index is called a place. A batch belongs to the
// operator that returned it. The operator that called next may change the batch until it calls next again.
type batch struct {
	width, n int
	vals     []value.Value
	cols     []fn.Column // nil if the rows are in vals
	at       []int32     // if cols is set, the indexes in cols of the n rows of the batch, ascending
	size     int         // if cols is set, the length of each column; rows that were dropped count too
	first    int         // the value of target for the first batch
	most     int         // the largest value of target
	target   int         // the number of rows at which the batch is full and is returned
	dropped  int         // the number of rows that the method pass has left out, in this batch and earlier ones
	// oldest is the oldest commit timestamp of the index entries from which the rows were made; 0 means that it is
	// not known.
	oldest mvcc.Timestamp
}

func newBatch(width int) batch {
	return batch{width: width, first: firstBatch, most: fullBatch, target: firstBatch}
}

// batch returns an empty batch for the operator that is being compiled.
func (c *compiler) batch(width int) batch {
	switch {
	case c.single:
		return batch{width: width, first: 1, most: 1, target: 1}
	case c.partial:
		return batch{width: width, first: limitedBatch, most: fullBatch, target: limitedBatch}
	}
	return newBatch(width)
}

func (b *batch) row(i int) []value.Value {
	return b.vals[i*b.width : (i+1)*b.width : (i+1)*b.width]
}

// everyPlace holds 0, 1, 2, ... and must not be changed, as all runs share it.
var everyPlace = func() []int32 {
	all := make([]int32, columnBatch)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}()

// placesTo returns the places 0 to n-1. The caller must not change the slice, which is shared.
func placesTo(n int) []int32 {
	if n <= len(everyPlace) {
		return everyPlace[:n]
	}
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// places returns the places (see batch) of the batch's rows in the columns that b.column returns, in ascending order.
func (b *batch) places() []int32 {
	if b.cols != nil {
		return b.at
	}
	return placesTo(b.n)
}

// fewRows is the greatest number of flat rows in a batch for which expressions are computed row by row. For so few
// rows, that costs less than allocating vectors.
const fewRows = 32

// isSmall reports whether the batch has flat rows, and at most fewRows of them.
func (b *batch) isSmall() bool { return b.cols == nil && b.n <= fewRows }

// span returns the length of the columns that b.column returns. In a batch of columns, the rows that were dropped count
// too.
func (b *batch) span() int {
	if b.cols != nil {
		return b.size
	}
	return b.n
}

// column returns column i of the batch. The values of the column are indexed by place (see batch).
func (b *batch) column(i int) fn.Column {
	if b.cols != nil {
		return b.cols[i]
	}
	return fn.Column{Values: b.vals[i:], Stride: b.width}
}

// rowAt returns the row at a place (see batch). If the batch has columns, rowAt builds the row in room, a slice of the
// batch's width.
func (b *batch) rowAt(place int32, room []value.Value) []value.Value {
	if b.cols == nil {
		return b.row(int(place))
	}
	for i := range b.cols {
		room[i] = b.cols[i].At(int(place))
	}
	return room
}

// setColumns replaces the rows of the batch by the n rows of cols.
func (b *batch) setColumns(cols []fn.Column, n int) {
	b.cols, b.n, b.size, b.at = cols, n, n, placesTo(n)
}

// toRows turns a batch of columns into one of flat rows.
func (b *batch) toRows() {
	if b.cols == nil {
		return
	}
	if cap(b.vals) < b.n*b.width {
		b.vals = make([]value.Value, b.n*b.width)
	}
	b.vals = b.vals[:b.n*b.width]
	for i := range b.cols {
		if b.n > 0 {
			b.cols[i].Put(b.vals[i:], b.width, b.at)
		}
	}
	b.cols = nil
}

// keepPlaces keeps the rows at the places in kept, and drops all other rows.
func (b *batch) keepPlaces(kept []int32) {
	if b.cols != nil {
		b.at, b.n = kept, len(kept)
		return
	}
	for to, from := range kept {
		if to != int(from) {
			copy(b.row(to), b.row(int(from)))
		}
	}
	b.truncate(len(kept))
}

// begin empties the batch, so that the operator can fill it again. If the batch was full, begin doubles b.target, the
// number of rows at which a batch is full, up to b.most.
func (b *batch) begin() {
	if b.n >= b.target && b.target < b.most {
		b.target *= 2
	}
	b.n, b.vals, b.cols, b.oldest = 0, b.vals[:0], nil, 0
}

func (b *batch) reset() { b.n, b.vals, b.cols, b.target = 0, b.vals[:0], nil, b.first }

func (b *batch) full() bool { return b.n >= b.target }

// add appends one row: the values of the first slice, followed by those of the second.
func (b *batch) add(a, c []value.Value) {
	b.vals = append(append(b.vals, a...), c...)
	b.n++
}

// fill calls the function next for one row after the other and adds the rows, until the batch is full or the function
// returns ok = false. If a row is longer than the batch's width, fill adds only the first columns of the row.
func (b *batch) fill(next func() (row []value.Value, ok bool, err error)) error {
	for !b.full() {
		row, ok, err := next()
		if !ok || err != nil {
			return err
		}
		b.add(row[:b.width], nil)
	}
	return nil
}

// appendRow appends a row and returns it. The caller must set all values of the row, because appendRow does not
// clear them.
func (b *batch) appendRow() []value.Value {
	at := len(b.vals)
	if need := at + b.width; need <= cap(b.vals) {
		b.vals = b.vals[:need]
	} else {
		b.vals = append(b.vals, make([]value.Value, b.width)...)
	}
	b.n++
	return b.vals[at : at+b.width : at+b.width]
}

// drop removes the last row and counts it (see pass). The caller has found that a condition is not TRUE for this row.
func (b *batch) drop(r *run) error {
	b.n--
	b.vals = b.vals[:b.n*b.width]
	return b.pass(r)
}

// pass counts a row that is left out of the batch. At every checkRows-th such row it calls run.check, because an
// operator can leave out very many rows before its batch is full.
func (b *batch) pass(r *run) error {
	if b.dropped++; b.dropped%checkRows == 0 {
		return r.check()
	}
	return nil
}

// written updates b.oldest after a row was appended; the parameter is the row's commit timestamp. That timestamp
// becomes b.oldest if the row is the only one of the batch, or if the timestamp is older than b.oldest.
func (b *batch) written(at mvcc.Timestamp) {
	if b.n == 1 || at < b.oldest {
		b.oldest = at
	}
}

// truncate keeps the first n rows.
func (b *batch) truncate(n int) {
	b.n = n
	if b.cols != nil {
		b.at = b.at[:n]
		return
	}
	b.vals = b.vals[:n*b.width]
}

// skip drops the first n rows.
func (b *batch) skip(n int) {
	b.n -= n
	if b.cols != nil {
		b.at = b.at[n:]
		return
	}
	b.vals = b.vals[n*b.width:]
}

// some returns b, or nil if b is empty. Operators return this result from their method next, where nil means the end.
func (b *batch) some() *batch {
	if b.n == 0 {
		return nil
	}
	return b
}
