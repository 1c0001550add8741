package table

import (
	"bytes"
	"slices"
	"sort"
)

// A Run is a list of keys with their values. After Sort, the keys are sorted and distinct. The slices that its methods
// return belong to the Run, and do not change.
type Run struct {
	data []byte // each key, followed by its value
	rows []runRow
}

// runRow gives the positions of a key and its value in data: the key is [begin, value), the value is [value, end).
type runRow struct{ begin, value, end uint32 }

// NewRun makes an empty run with capacity for the given number of rows and bytes. The caller adds rows and then calls
// Sort.
func NewRun(rows, bytes int) *Run {
	return &Run{data: make([]byte, 0, bytes), rows: make([]runRow, 0, rows)}
}

// Add copies a key and its value into the run. All keys and values of a run together must have less than 4 GiB; those
// of a commit have at most MaxCommitBytes.
func (r *Run) Add(key, val []byte) {
	begin := len(r.data)
	r.data = append(append(r.data, key...), val...)
	r.rows = append(r.rows, runRow{uint32(begin), uint32(begin + len(key)), uint32(len(r.data))})
}

// Len returns the number of keys.
func (r *Run) Len() int { return len(r.rows) }

// Bytes returns the size of all keys and values.
func (r *Run) Bytes() int { return len(r.data) }

// Size returns the memory that the run takes, in bytes.
func (r *Run) Size() int64 { return int64(cap(r.data)) + int64(cap(r.rows))*runRowBytes }

const runRowBytes = 12

// Key returns the key at index i.
func (r *Run) Key(i int) []byte {
	row := r.rows[i]
	return r.data[row.begin:row.value:row.value]
}

// Value returns the value of the key at index i.
func (r *Run) Value(i int) []byte {
	row := r.rows[i]
	return r.data[row.value:row.end:row.end]
}

// From searches the keys from index begin on. It returns the index of the first one that is equal to the parameter key
// or sorts after it, or Len if there is none.
func (r *Run) From(begin int, key []byte) int {
	return begin + sort.Search(len(r.rows)-begin, func(i int) bool { return bytes.Compare(r.Key(begin+i), key) >= 0 })
}

// Sort sorts the rows by key. If a key was added more than once, Sort keeps only the row that was added last, and
// returns one such key; otherwise it returns nil.
func (r *Run) Sort() (twice []byte) {
	sorted, distinct := true, true
	for i := 1; i < len(r.rows) && sorted; i++ {
		order := bytes.Compare(r.Key(i-1), r.Key(i))
		sorted, distinct = order <= 0, distinct && order != 0
	}
	if sorted && distinct {
		return nil
	}
	slices.SortStableFunc(r.rows, func(a, b runRow) int {
		return bytes.Compare(r.data[a.begin:a.value], r.data[b.begin:b.value])
	})
	kept := r.rows[:1]
	for _, row := range r.rows[1:] {
		last := &kept[len(kept)-1]
		if bytes.Equal(r.data[last.begin:last.value], r.data[row.begin:row.value]) {
			twice = r.data[row.begin:row.value]
			*last = row
			continue
		}
		kept = append(kept, row)
	}
	r.rows = kept
	return twice
}
