package table

import (
	"bytes"
	"slices"
	"sort"
)

// A Run is keys, in ascending order and each once, with their values. What it gives belongs to it and does not change.
type Run struct {
	data []byte // each key, and its value behind it
	rows []runRow
}

// runRow is where a key and its value lie in data: the key from begin, the value behind it up to end.
type runRow struct{ begin, value, end uint32 }

// NewRun makes an empty run with room for so many rows of about so many bytes. Rows are added, and then Sort must be called.
func NewRun(rows, bytes int) *Run {
	return &Run{data: make([]byte, 0, bytes), rows: make([]runRow, 0, rows)}
}

// Add copies a key and its value. All must be less than 4 GiB: a commit has less, see MaxCommitBytes.
func (r *Run) Add(key, val []byte) {
	begin := len(r.data)
	r.data = append(append(r.data, key...), val...)
	r.rows = append(r.rows, runRow{uint32(begin), uint32(begin + len(key)), uint32(len(r.data))})
}

// Len is the number of keys.
func (r *Run) Len() int { return len(r.rows) }

// Bytes are those of all keys and values.
func (r *Run) Bytes() int { return len(r.data) }

// Size is the memory in bytes that the run takes.
func (r *Run) Size() int64 { return int64(cap(r.data)) + int64(cap(r.rows))*runRowBytes }

const runRowBytes = 12

// Key is a key, by its place.
func (r *Run) Key(i int) []byte {
	row := r.rows[i]
	return r.data[row.begin:row.value:row.value]
}

// Value is the value of a key, by its place.
func (r *Run) Value(i int) []byte {
	row := r.rows[i]
	return r.data[row.value:row.end:row.end]
}

// From is the place, not before begin, of the first key at or behind key; Len if there is none.
func (r *Run) From(begin int, key []byte) int {
	return begin + sort.Search(len(r.rows)-begin, func(i int) bool { return bytes.Compare(r.Key(begin+i), key) >= 0 })
}

// Sort brings rows that were added in any order into that of their keys. It returns a key that was added more than once, nil if there is none. Of the
// rows with one key the last that was added stays.
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
