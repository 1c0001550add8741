package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// rowList keeps rows in the order in which they are added. They are in memory, or on disk if they are too many. They may be read several times.
type rowList struct {
	types  []*value.Type
	rows   []value.Value // flat
	n      int           // rows in memory
	held   held
	writer *spill.Writer // not nil if the rows are on disk
	disk   *spill.Rows   // nil before finish, and if the rows are in memory
}

// reset empties the list.
func (l *rowList) reset(r *run) {
	if l.disk != nil {
		l.disk.Free()
	} else if l.writer != nil {
		l.writer.Drop()
	}
	r.memory.release(&l.held)
	l.rows, l.n, l.writer, l.disk = nil, 0, nil, nil
}

func (l *rowList) add(r *run, row []value.Value) error {
	if l.writer != nil {
		return l.writer.Append(row)
	}
	l.rows = append(l.rows, row...)
	l.n++
	if err := r.memory.keep(&l.held, row); err != nil || !r.memory.full(l.held) {
		return err
	}
	return l.spill(r)
}

// spill moves the rows to disk.
func (l *rowList) spill(r *run) (err error) {
	if l.writer, err = r.newList(l.types); err != nil {
		return err
	}
	w := len(l.types)
	for i := range l.n {
		if err := l.writer.Append(l.rows[i*w : (i+1)*w]); err != nil {
			return err
		}
	}
	l.rows, l.n = nil, 0
	r.memory.release(&l.held)
	return nil
}

// finish must be called after the last add and before read.
func (l *rowList) finish() (err error) {
	if l.writer != nil {
		l.disk, err = l.writer.Finish()
	}
	return err
}

// read returns a reader at the beginning of the list.
func (l *rowList) read() rowReader {
	reader := rowReader{list: l}
	if l.disk != nil {
		reader.disk, reader.row = l.disk.Read(), make([]value.Value, len(l.types))
	}
	return reader
}

// rowReader reads a rowList.
type rowReader struct {
	list *rowList
	at   int // how many rows in memory have been read
	disk *spill.Reader
	row  []value.Value
}

// nextRow returns the next row, which is valid until the next call.
func (t *rowReader) nextRow() (row []value.Value, ok bool, err error) {
	if t.disk != nil {
		ok, err = t.disk.Next(t.row)
		return t.row, ok, err
	}
	if t.at == t.list.n {
		return nil, false, nil
	}
	w := len(t.list.types)
	t.at++
	return t.list.rows[(t.at-1)*w : t.at*w], true, nil
}

// fill adds the next rows to b until it is full or there are no more.
func (t *rowReader) fill(b *batch) error {
	if t.disk == nil {
		w := len(t.list.types)
		n := min(b.target-b.n, t.list.n-t.at)
		b.vals = append(b.vals, t.list.rows[t.at*w:(t.at+n)*w]...)
		b.n += n
		t.at += n
		return nil
	}
	for !b.full() {
		row, ok, err := t.nextRow()
		if !ok || err != nil {
			return err
		}
		b.add(row, nil)
	}
	return nil
}
