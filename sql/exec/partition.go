package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// partitionBits bits of a hash say which partition a row belongs to. Each partition takes spill.BlockSize bytes of memory while it
// is written.
const (
	partitionBits  = 4
	partitionCount = 1 << partitionBits
)

// partitions are rows on disk, parted by hashes of their keys: rows with equal keys are in one partition, in the order in which they were
// added.
type partitions struct {
	types   []*value.Type
	writers [partitionCount]*spill.Writer // nil: no rows
	held    held
}

// add adds a row, the values of row followed by more, whose key has this hash.
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

// finish ends adding. A partition without rows is nil.
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

// tagged are rows with tags, which are computed partition by partition and read in the order of their tags.
type tagged struct {
	types  []*value.Type // the last is the tag
	writer *spill.Writer
	lists  []*spill.Rows
	others []rowStream
	merged *merge
}

// newTagged begins rows with columns of these types.
func newTagged(types []*value.Type) *tagged { return &tagged{types: withTag(types)} }

// begin begins a list. Tags ascend within a list.
func (t *tagged) begin(r *run) (err error) {
	t.writer, err = r.newList(t.types)
	return err
}

func (t *tagged) add(tag int64, row []value.Value) error {
	return t.writer.Append(row, value.OfInt64(tag))
}

// end ends the list.
func (t *tagged) end() error {
	l, err := t.writer.Finish()
	t.writer = nil
	if err == nil && l.Len() > 0 {
		t.lists = append(t.lists, l)
	}
	return err
}

// finish ends adding.
func (t *tagged) finish(r *run) (err error) {
	lists, others := t.lists, t.others
	t.lists, t.others = nil, nil
	t.merged, err = r.newMerge(t.types, compareTags, lists, others...)
	return err
}

// nextRow is the next row, with its tag; it is good until the next call.
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
