package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// The first partitionBits bits of a key's hash choose the partition of a row. Each partition takes spill.BlockSize bytes of memory while it is
// written.
const (
	partitionBits  = 4
	partitionCount = 1 << partitionBits
)

// partitions divides rows on disk by hashes of their keys. Rows with equal keys are in the same partition, in the order in which they were added.
type partitions struct {
	types   []*value.Type
	writers [partitionCount]*spill.Writer // nil if the partition has no rows
	held    held
}

// add adds a row whose key has this hash. The row is the values of row, followed by more.
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

// finish returns the lists of the partitions, nil for one without rows. No row may be added afterwards.
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

// drop frees the rows of partitions that are not finished.
func (p *partitions) drop(r *run) {
	for i, w := range p.writers {
		if w != nil {
			w.Drop()
			p.writers[i] = nil
		}
	}
	r.memory.release(&p.held)
}

// tagged collects rows that are computed partition by partition. Each row has a number, its tag. The rows are read in the order of their tags.
type tagged struct {
	types  []*value.Type // the last is the tag
	writer *spill.Writer
	lists  []*spill.Rows
	others []rowStream
	merged *merge
}

// newTagged returns an empty tagged for rows with columns of these types.
func newTagged(types []*value.Type) *tagged { return &tagged{types: withTag(types)} }

// begin begins a list. Within a list, rows must be added by ascending tag.
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

// finish merges the lists. nextRow then returns the rows, and none may be added.
func (t *tagged) finish(r *run) (err error) {
	lists, others := t.lists, t.others
	t.lists, t.others = nil, nil
	t.merged, err = r.newMerge(t.types, compareTags, lists, others...)
	return err
}

// nextRow returns the next row, with its tag as the last value. The row is valid until the next call.
func (t *tagged) nextRow() (row []value.Value, ok bool, err error) { return t.merged.nextRow() }

// close frees the rows. t may be nil.
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
