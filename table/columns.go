package table

import (
	"github.com/crowfoot-db/crowfoot/value"
)

// Fill appends the next rows to columns, directly from their stored bytes. columns has one entry for each column of
// the projection. Fill stops once the keys and values of the appended rows have at least as many bytes as the parameter
// size says. It returns the number of appended rows; 0 means that no rows are left.
func (r *Rows) Fill(columns []value.Column, size int) (rows int, err error) {
	for size > 0 {
		ok, err := r.Next()
		if !ok || err != nil {
			return rows, err
		}
		if err := r.row.appendTo(columns); err != nil {
			return rows, err
		}
		rows++
		size -= len(r.row.key) + len(r.row.val)
	}
	return rows, nil
}

// FillBatch is Fill with a limit on the number of rows, which is the parameter most. It also stops after a large row
// (IsLarge), because the memory of that row is charged to the request only until the next call of Next. It returns the
// number of appended rows even if there is an error. Rows.DataSize does not count the rows that FillBatch appends.
func (r *Rows) FillBatch(columns []value.Column, most, size int) (rows int, err error) {
	for rows < most && size > 0 {
		ok, err := r.Next()
		if !ok || err != nil {
			return rows, err
		}
		if err := r.row.decodeTo(columns); err != nil {
			return rows, err
		}
		rows++
		size -= len(r.row.key) + len(r.row.val)
		if r.IsLarge() {
			break
		}
	}
	return rows, nil
}

// decodeTo appends each value of the row to its column in columns. Unlike appendTo, it does not add the sizes of the
// values to l.data.
func (l *located) decodeTo(columns []value.Column) (err error) {
	for i := range l.p.sources {
		s, to := &l.p.sources[i], columns[i]
		switch kind, place := l.from(s); kind {
		case fromKey:
			err = to.AppendKey(l.key[l.offsets[place]:], s.desc)
		case fromValue:
			if f := l.fields[place]; f.isNull() {
				to.AppendNull()
			} else {
				err = to.AppendRow(f.of(l.val))
			}
		case computed:
			err = to.AppendValue(l.virtual[place])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendTo appends each value of the row to its column in columns, and adds the sizes of the values to l.data.
func (l *located) appendTo(columns []value.Column) (err error) {
	size := 0
	for i := range l.p.sources {
		s, to := &l.p.sources[i], columns[i]
		switch kind, place := l.from(s); kind {
		case fromKey:
			key := l.key[l.offsets[place]:]
			err = to.AppendKey(key, s.desc)
			size += value.KeyDataSize(key, s.typ, s.desc)
		case fromValue:
			f := l.fields[place]
			if f.isNull() {
				to.AppendNull()
				continue
			}
			payload := f.of(l.val)
			err = to.AppendRow(payload)
			size += s.rowSize(payload)
		case computed:
			err = to.AppendValue(l.virtual[place])
			size += l.virtual[place].DataSize(s.typ)
		}
		if err != nil {
			return err
		}
	}
	l.data += int64(size)
	return nil
}
