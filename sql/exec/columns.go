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
	first := b.next
	for size > 0 && b.next < b.batch.n {
		b.next++
		size -= b.Size()
	}
	rows = b.next - first
	for c, to := range columns {
		at, t := first*b.batch.width+c, b.columns[c].Type
		for range rows {
			v := b.batch.vals[at]
			if err := to.AppendValue(v); err != nil {
				return 0, err
			}
			b.data += int64(v.DataSize(t))
			at += b.batch.width
		}
	}
	return rows, nil
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
