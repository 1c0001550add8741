package exec

import (
	"github.com/crowfoot-db/crowfoot/value"
)

// Fill implements Rows. It appends the next rows to columns, as table.Rows does.
func (k *keyRows) Fill(columns []value.Column, size int) (rows int, err error) {
	rows, err = k.Rows.Fill(columns, size)
	k.returned += int64(rows)
	return rows, err
}

// Fill appends the next rows of the batch, of about size bytes, to columns. The batch must have flat rows.
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

// through returns how many of the next rows of the batch have size bytes together, or all of them.
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

// fillColumns is Fill for a batch of columns.
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

// placesOf returns how many of the rows at places have size bytes together, or all of them.
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
