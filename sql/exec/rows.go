package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// wireTag is the protobuf tag of field 2 (values) of google.spanner.v1.PartialResultSet, with the wire type for
// length-delimited bytes.
const wireTag = 2<<3 | 2

// batchRows implements the methods of Rows that are about the current row, for a batch of flat rows or of columns.
// If every column of the batch is a vector, values are encoded straight from the vectors, without building rows.
type batchRows struct {
	columns []plan.Column
	batch   *batch
	vectors []*value.Vector // the columns of batch; empty if they are not all vectors
	next    int             // index in batch of the row after the current one
	data    int64           // the result of DataSize
}

// reset replaces the current batch by another one, or by none. A call of Next then moves to the first row of the new
// batch.
func (b *batchRows) reset(next *batch) {
	b.batch, b.next, b.vectors = next, 0, b.vectors[:0]
	if next == nil || next.cols == nil {
		return
	}
	for i := range next.cols {
		if next.cols[i].Vector == nil {
			b.vectors = b.vectors[:0]
			return
		}
		b.vectors = append(b.vectors, next.cols[i].Vector)
	}
}

func (b *batchRows) row() []value.Value { return b.batch.row(b.next - 1) }

// place returns the index of the current row in the columns of the batch.
func (b *batchRows) place() int { return int(b.batch.at[b.next-1]) }

func (b *batchRows) AppendWire(dst []byte) []byte {
	if len(b.vectors) > 0 {
		dst, size := value.AppendVectorsWire(dst, wireTag, b.vectors, b.place())
		b.data += int64(size)
		return dst
	}
	for i, v := range b.row() {
		t := b.columns[i].Type
		dst = v.AppendWireField(dst, wireTag, t)
		b.data += int64(v.DataSize(t))
	}
	return dst
}

func (b *batchRows) AppendColumn(dst []byte, i int) []byte {
	if len(b.vectors) > 0 {
		dst, size := value.AppendVectorsWire(dst, wireTag, b.vectors[i:i+1], b.place())
		b.data += int64(size)
		return dst
	}
	v, t := b.row()[i], b.columns[i].Type
	b.data += int64(v.DataSize(t))
	return v.AppendWireField(dst, wireTag, t)
}

func (b *batchRows) Size() (n int) {
	if len(b.vectors) > 0 {
		return value.VectorsWireSize(b.vectors, b.place())
	}
	row := b.row()
	for i := range row {
		n += row[i].WireSize()
	}
	return n
}

func (b *batchRows) ColumnSize(i int) int {
	if len(b.vectors) > 0 {
		return value.VectorsWireSize(b.vectors[i:i+1], b.place())
	}
	return b.row()[i].WireSize()
}

func (b *batchRows) Values(dst []value.Value) []value.Value {
	if len(b.vectors) == 0 {
		return append(dst, b.row()...)
	}
	for _, v := range b.vectors {
		dst = append(dst, v.At(b.place()))
	}
	return dst
}
func (b *batchRows) DataSize() int64        { return b.data }
func (b *batchRows) Columns() []plan.Column { return b.columns }

// Fill appends the values of the next rows of the batch to columns, until the rows have about size bytes. It
// returns their number. The batch must have flat rows.
func (b *batchRows) Fill(columns []value.Column, size int) (rows int, err error) {
	first, rows := b.next, b.through(size)
	b.next += rows
	for c, to := range columns {
		at, t := first*b.batch.width+c, b.columns[c].Type
		fixed, bytes := value.FixedSize(t.Kind), 0
		for range rows {
			v := b.batch.vals[at]
			if err := to.AppendValue(v); err != nil {
				return 0, err
			}
			switch {
			case fixed == 0:
				bytes += v.DataSize(t)
			case !v.IsNull():
				bytes += fixed
			}
			at += b.batch.width
		}
		b.data += int64(bytes)
	}
	return rows, nil
}

// through returns how many rows Fill appends: as many of the next rows of the batch as it takes to reach size
// bytes, or all of them if they have fewer bytes.
func (b *batchRows) through(size int) (rows int) {
	fixed := 0
	var varied []int // the columns whose values have no fixed size
	for c := range b.columns {
		n := value.FixedSize(b.columns[c].Type.Kind)
		if fixed += n; n == 0 {
			varied = append(varied, c)
		}
	}
	for at := b.next * b.batch.width; size > 0 && b.next+rows < b.batch.n; at += b.batch.width {
		size -= fixed
		for _, c := range varied {
			size -= b.batch.vals[at+c].WireSize()
		}
		rows++
	}
	return rows
}

// fillColumns does what Fill does, for a batch of columns.
func (b *batchRows) fillColumns(columns []value.Column, size int) (rows int, err error) {
	places := b.batch.at[b.next:]
	places = places[:b.placesOf(places, size)]
	for c, to := range columns {
		from, t := &b.batch.cols[c], b.columns[c].Type
		texts := from.Vector
		if texts != nil && texts.Offsets == nil {
			texts = nil
		}
		fixed, bytes := value.FixedSize(t.Kind), 0
		for _, at := range places {
			if texts != nil && !texts.IsNull(int(at)) {
				text := texts.TextAt(int(at))
				bytes += len(text)
				err = to.AppendRow(text)
			} else {
				v := from.Peek(int(at))
				err = to.AppendValue(v)
				switch {
				case fixed == 0:
					bytes += v.DataSize(t)
				case !v.IsNull():
					bytes += fixed
				}
			}
			if err != nil {
				return 0, err
			}
		}
		b.data += int64(bytes)
	}
	b.next += len(places)
	return len(places), nil
}

// placesOf returns how many rows fillColumns appends: as many of the rows at the given places as it takes to reach size
// bytes, or all of them if they have fewer bytes.
func (b *batchRows) placesOf(places []int32, size int) (rows int) {
	for rows < len(places) && size > 0 {
		for c := range b.batch.cols {
			col := &b.batch.cols[c]
			switch n := value.FixedSize(b.columns[c].Type.Kind); {
			case n > 0:
				size -= n
			case col.Vector != nil && col.Vector.Offsets != nil:
				size -= len(col.Vector.TextAt(int(places[rows])))
			default:
				v := col.Peek(int(places[rows]))
				size -= v.WireSize()
			}
		}
		rows++
	}
	return rows
}

// operatorRows are the Rows of a query that runs operators.
type operatorRows struct {
	batchRows
	run  *run
	root operator
	err  error
}

func (q *operatorRows) Next() (bool, error) {
	if q.batch == nil || q.next == q.batch.n {
		if more, err := q.pull(); !more || err != nil {
			return false, err
		}
	}
	if q.batch.cols != nil && len(q.vectors) == 0 {
		q.batch.skip(q.next)
		q.batch.toRows()
		q.next = 0
	}
	q.next++
	q.run.stats.RowsReturned++
	return true, nil
}

// pull gets the next batch of root, with flat rows or columns. more is false at the end, where pull also closes
// root.
func (q *operatorRows) pull() (more bool, err error) {
	if q.err != nil || q.root == nil {
		return false, q.err
	}
	var next *batch
	next, q.err = q.run.pull(q.root)
	if q.err != nil {
		next = nil
	}
	if q.reset(next); next == nil {
		if err := q.Close(); q.err == nil {
			q.err = err
		}
		return false, q.err
	}
	return true, nil
}

// Fill implements Rows. It copies a batch of columns column by column, without building rows.
func (q *operatorRows) Fill(columns []value.Column, size int) (rows int, err error) {
	if q.batch == nil || q.next == q.batch.n {
		if more, err := q.pull(); !more || err != nil {
			return 0, err
		}
	}
	if q.batch.cols != nil {
		rows, err = q.fillColumns(columns, size)
	} else {
		rows, err = q.batchRows.Fill(columns, size)
	}
	q.run.stats.RowsReturned += int64(rows)
	return rows, err
}

// Release closes the cursors that scans of a snapshot hold in the storage engine. The caller uses it when it will
// not read further rows for some time. A later call of Next continues after the current row.
func (q *operatorRows) Release() {
	for _, rows := range q.run.opened {
		rows.Release()
	}
	for _, scan := range q.run.byColumns {
		scan.release()
	}
}

func (q *operatorRows) RowCount() int64 { return 0 }
func (q *operatorRows) Stats() Stats    { return q.run.cost() }

func (q *operatorRows) Close() error {
	if q.root == nil {
		return nil
	}
	root := q.root
	q.root = nil
	err := root.close()
	for i := range q.run.subqueries {
		if op := q.run.subqueries[i].op; op != nil {
			if e := op.close(); err == nil {
				err = e
			}
		}
	}
	if e := q.run.end(); err == nil {
		err = e
	}
	return err
}

// keyRows are the Rows of a plan that only reads rows of one table or index by key (Program.read). Package table reads
// and encodes them; no operator runs.
type keyRows struct {
	*table.Rows
	run      run
	place    place
	columns  []plan.Column
	returned int64
}

func (k *keyRows) open(r *run) error {
	if err := r.prog.read.locate(r, &k.place); err != nil {
		return err
	}
	k.Rows = r.prog.read.read(r, &k.place).Open(r.ctx, r.view)
	return nil
}

func (k *keyRows) Next() (bool, error) {
	ok, err := k.Rows.Next()
	if ok {
		k.returned++
	}
	return ok, err
}

// Fill implements Rows. It calls Fill of table.Rows, which appends the values, and counts the rows for Stats.
func (k *keyRows) Fill(columns []value.Column, size int) (rows int, err error) {
	rows, err = k.Rows.Fill(columns, size)
	k.returned += int64(rows)
	return rows, err
}

func (k *keyRows) Columns() []plan.Column { return k.columns }
func (k *keyRows) RowCount() int64        { return 0 }
func (k *keyRows) Stats() Stats {
	return Stats{RowsScanned: k.returned, RowsReturned: k.returned}
}
