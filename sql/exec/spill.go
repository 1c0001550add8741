package exec

import (
	"cmp"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// Operators keep their rows in memory until the run has more than its share. Then they move rows to a temporary file (package spill). Spilling
// changes neither the rows nor their order: a client that resumes a stream makes the server run the statement again, and must get the same rows. So
// rows that are computed out of order (partition by partition) carry a tag, the number of the input row that they come from, and are merged by tag.

// newList begins a list of rows on disk.
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

// end gives back the memory that the run keeps and deletes its temporary file.
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

// spilled returns how much the run has spilled so far.
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

// compareTags compares rows by their tags.
func compareTags(a, b []value.Value) int {
	last := len(a) - 1
	return cmp.Compare(a[last].AsInt64(), b[last].AsInt64())
}

func free(lists []*spill.Rows) {
	for _, l := range lists {
		l.Free()
	}
}

// readLast reads a list for the last time and frees it. It reads each row into row and calls f.
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
