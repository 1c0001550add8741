package exec

import (
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Batches begin small, so that a query that wants one row does not compute a
// thousand. They grow until the cost of a pull no longer matters. Under a LIMIT they begin with one row, since
// every row that is read in a read-write transaction is locked.
const (
	firstBatch   = 16
	fullBatch    = 512
	limitedBatch = 1
	// columnBatch is how many rows a batch of columns has at most: the vectors of a query stay in the processor's cache.
	columnBatch = 1024
)

// batch is rows in one of two forms: flat in one slice, so that row i is vals[i*width : (i+1)*width], or column by column, in cols. It
// belongs to the operator that returned it. The operator that pulled it may change it
// until its next pull.
type batch struct {
	width, n int
	vals     []value.Value
	cols     []fn.Column // nil: the rows are in vals
	at       []int32     // with cols, the places of the n rows in them, ascending
	size     int         // with cols, how many places they have
	first    int         // the first value of target
	most     int         // the last one
	target   int         // how many rows the owner puts in before it returns the batch
	dropped  int         // rows, so far
	// oldest is the oldest commit that wrote a row of a range of which these rows were made; 0 is unknown.
	oldest mvcc.Timestamp
}

func newBatch(width int) batch {
	return batch{width: width, first: firstBatch, most: fullBatch, target: firstBatch}
}

// batch is an empty batch for the operator that is being compiled.
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

// everyPlace is 0, 1, 2, ... It is never changed.
var everyPlace = func() []int32 {
	all := make([]int32, columnBatch)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}()

// placesTo is the places below n.
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

// places are those of the batch's rows in the columns that column returns, ascending.
func (b *batch) places() []int32 {
	if b.cols != nil {
		return b.at
	}
	return placesTo(b.n)
}

// fewRows is up to how many rows of a batch of rows an expression is computed row by row: less than the memory of vectors costs.
const fewRows = 32

// isSmall says that the batch is one of few rows.
func (b *batch) isSmall() bool { return b.cols == nil && b.n <= fewRows }

// span is how many places the columns of the batch have.
func (b *batch) span() int {
	if b.cols != nil {
		return b.size
	}
	return b.n
}

// column is the values of a column, by place.
func (b *batch) column(i int) fn.Column {
	if b.cols != nil {
		return b.cols[i]
	}
	return fn.Column{Values: b.vals[i:], Stride: b.width}
}

// rowAt is the row at a place. It may lie in room, which has the batch's width.
func (b *batch) rowAt(place int32, room []value.Value) []value.Value {
	if b.cols == nil {
		return b.row(int(place))
	}
	for i := range b.cols {
		room[i] = b.cols[i].At(int(place))
	}
	return room
}

// setColumns makes the batch one of n rows in cols.
func (b *batch) setColumns(cols []fn.Column, n int) {
	b.cols, b.n, b.size, b.at = cols, n, n, placesTo(n)
}

// toRows puts the rows of a batch of columns into vals.
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

// keepPlaces keeps the rows at some of the batch's places.
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

// begin empties the batch for the next pull, and makes the batches after that larger.
func (b *batch) begin() {
	if b.n >= b.target && b.target < b.most {
		b.target *= 2
	}
	b.n, b.vals, b.cols, b.oldest = 0, b.vals[:0], nil, 0
}

func (b *batch) reset() { b.n, b.vals, b.cols, b.target = 0, b.vals[:0], nil, b.first }

func (b *batch) full() bool { return b.n >= b.target }

// add appends a row: the values of a, followed by those of c.
func (b *batch) add(a, c []value.Value) {
	b.vals = append(append(b.vals, a...), c...)
	b.n++
}

// fill adds the rows that next gives, up to the batch's size. Of a longer row the first columns are taken.
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

// grow appends a row and returns it. Its values are not set: the caller sets them all.
func (b *batch) grow() []value.Value {
	at := len(b.vals)
	if need := at + b.width; need <= cap(b.vals) {
		b.vals = b.vals[:need]
	} else {
		b.vals = append(b.vals, make([]value.Value, b.width)...)
	}
	b.n++
	return b.vals[at : at+b.width : at+b.width]
}

// drop takes back the last row, which a condition does not want.
func (b *batch) drop(r *run) error {
	b.n--
	b.vals = b.vals[:b.n*b.width]
	return b.pass(r)
}

// pass counts a row that does not come into the batch. An operator that passes over very many before its batch is full is checked now and then.
func (b *batch) pass(r *run) error {
	if b.dropped++; b.dropped%checkRows == 0 {
		return r.check()
	}
	return nil
}

// written notes that a row of the batch was written at a timestamp.
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

// some is what next returns: b, or nil if b is empty.
func (b *batch) some() *batch {
	if b.n == 0 {
		return nil
	}
	return b
}
