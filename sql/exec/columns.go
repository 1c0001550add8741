package exec

import (
	"github.com/crowfoot-db/crowfoot/value"
)

// Fill moves to the rows that follow and appends them to columns, as table.Rows does.
func (k *keyRows) Fill(columns []value.Column, size int) (rows int, err error) {
	rows, err = k.Rows.Fill(columns, size)
	k.returned += int64(rows)
	return rows, err
}

// Fill appends the rows that follow in the batch, of about size bytes, column by column.
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

// through is how many of the rows that follow have size bytes, or all of them.
func (b *batchRows) through(size int) (rows int) {
	fixed := 0
	var varied []int // columns
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

// Fill implements Rows.
func (q *operatorRows) Fill(columns []value.Column, size int) (rows int, err error) {
	if ok, err := q.Next(); !ok || err != nil {
		return 0, err
	}
	q.next-- // it is the first of those that are appended
	rows, err = q.batchRows.Fill(columns, size)
	q.run.stats.RowsReturned += int64(rows) - 1
	return rows, err
}
