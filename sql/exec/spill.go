package exec

import (
	"cmp"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// Operators keep their rows in memory until the run keeps more bytes than it may. Then they move rows to a
// temporary file (package spill). Spilling must change neither the rows nor their order: a client that resumes a
// stream makes the server run the statement again, and must get the same rows. So rows that are computed out of
// order (partition by partition) carry a tag, the position of the input row from which they were computed, and are
// merged by tag.

// newList begins a list of rows on disk. It creates the run's temporary file if there is none yet.
func (r *run) newList(types []*value.Type) (*spill.Writer, error) {
	if r.file == nil {
		f, err := r.env.Spill.Create(r.check)
		if err != nil {
			return nil, err
		}
		r.file = f
	}
	return r.file.NewWriter(types), nil
}

// end gives back the memory that was charged to the run, and deletes the run's temporary file.
func (r *run) end() error {
	r.memory.end()
	if r.file == nil {
		return nil
	}
	r.stats.Spilled = r.file.Written()
	err := r.file.Close()
	r.file = nil
	return err
}

// spilled returns how many rows and bytes the run has written to its temporary file so far.
func (r *run) spilled() spill.Written {
	if r.file == nil {
		return r.stats.Spilled
	}
	return r.file.Written()
}

// withTag returns types followed by the type of a tag.
func withTag(types []*value.Type) []*value.Type {
	return append(types[:len(types):len(types)], value.Int64Type)
}

// compareTags compares two rows by their tags, which are their last values.
func compareTags(a, b []value.Value) int {
	last := len(a) - 1
	return cmp.Compare(a[last].AsInt64(), b[last].AsInt64())
}

func free(lists []*spill.Rows) {
	for _, l := range lists {
		l.Free()
	}
}

// readLast reads a list for the last time, and frees it. It stores each row in the slice row and then calls f.
func readLast(list *spill.Rows, row []value.Value, f func() error) error {
	reader := list.ReadLast()
	defer reader.Close()
	for {
		ok, err := reader.Next(row)
		if !ok || err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
	}
}

// rowList keeps rows in the order in which they are added. The rows are in memory, or all on disk if they take too
// much memory. They can be read several times.
type rowList struct {
	types  []*value.Type
	rows   []value.Value // the rows in memory, one after the other
	n      int           // the number of rows in memory
	held   held
	writer *spill.Writer // not nil if the rows are on disk
	disk   *spill.Rows   // nil before finish, and if the rows are in memory
}

// reset removes all rows of the list.
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

// spill moves the rows in memory to disk.
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

// finish ends the list: no row may be added afterwards. The caller must call finish before it calls read.
func (l *rowList) finish() (err error) {
	if l.writer != nil {
		l.disk, err = l.writer.Finish()
	}
	return err
}

// read returns a reader that begins with the first row of the list.
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
	at   int // the number of rows in memory that were read
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

// fill adds the next rows to b, until b is full or the list ends.
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

// Rows are divided into partitionCount partitions: the first partitionBits bits of the hash of a row's key choose
// the partition. Each partition takes spill.BlockSize bytes of memory while it is written.
const (
	partitionBits  = 4
	partitionCount = 1 << partitionBits
)

// partitions divides rows by the hashes of their keys and writes them to disk. Rows with equal keys are in the same
// partition, in the order in which they were added.
type partitions struct {
	types   []*value.Type
	writers [partitionCount]*spill.Writer // nil if the partition has no rows
	held    held
}

// add writes a row to the partition for the hash of the row's key. The values of the row are the concatenation of the
// slices row and more.
func (p *partitions) add(r *run, hash uint64, row []value.Value, more ...value.Value) error {
	w := &p.writers[hash>>(64-partitionBits)]
	if *w == nil {
		if err := r.memory.keepBytes(&p.held, spill.BlockSize); err != nil {
			return err
		}
		var err error
		if *w, err = r.newList(p.types); err != nil {
			return err
		}
	}
	return (*w).Append(row, more...)
}

// finish returns one list for each partition, nil for a partition without rows. No row may be added afterwards.
func (p *partitions) finish(r *run) (lists [partitionCount]*spill.Rows, err error) {
	for i, w := range p.writers {
		if w == nil {
			continue
		}
		if lists[i], err = w.Finish(); err != nil {
			return lists, err
		}
	}
	p.writers = [partitionCount]*spill.Writer{}
	r.memory.release(&p.held)
	return lists, nil
}

// drop frees all rows. It is for partitions for which finish was not called.
func (p *partitions) drop(r *run) {
	for i, w := range p.writers {
		if w != nil {
			w.Drop()
			p.writers[i] = nil
		}
	}
	r.memory.release(&p.held)
}

// tagged collects rows that are computed partition by partition. Each row has a tag, an integer, and nextRow
// returns the rows in the order of their tags.
type tagged struct {
	types  []*value.Type // the types of the columns of a row; the last is the type of the tag
	writer *spill.Writer
	lists  []*spill.Rows
	others []rowStream
	merged *merge
}

// newTagged returns a tagged that holds no rows yet. Its rows have columns of these types, followed by the tag.
func newTagged(types []*value.Type) *tagged { return &tagged{types: withTag(types)} }

// begin begins a list. Within a list, the caller must add rows in ascending order of their tags.
func (t *tagged) begin(r *run) (err error) {
	t.writer, err = r.newList(t.types)
	return err
}

func (t *tagged) add(tag int64, row []value.Value) error {
	return t.writer.Append(row, value.OfInt64(tag))
}

// end ends the current list.
func (t *tagged) end() error {
	l, err := t.writer.Finish()
	t.writer = nil
	if err == nil && l.Len() > 0 {
		t.lists = append(t.lists, l)
	}
	return err
}

// finish merges the lists, so that nextRow can return the rows. No row may be added afterwards.
func (t *tagged) finish(r *run) (err error) {
	lists, others := t.lists, t.others
	t.lists, t.others = nil, nil
	t.merged, err = r.newMerge(t.types, compareTags, lists, others...)
	return err
}

// nextRow returns the next row, with its tag as the last value. The row is valid until the next call.
func (t *tagged) nextRow() (row []value.Value, ok bool, err error) { return t.merged.nextRow() }

// close frees all rows. t can be nil.
func (t *tagged) close(r *run) {
	if t == nil {
		return
	}
	if t.writer != nil {
		t.writer.Drop()
	}
	free(t.lists)
	for _, o := range t.others {
		o.Close()
	}
	if t.merged != nil {
		t.merged.close(r)
	}
}
