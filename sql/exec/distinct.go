package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// distinctRows finds the rows that are the first with their key. It keeps the keys in memory. If there are too many, it puts rows with further keys
// off: it writes them to partitions on disk, and finds the first row of each key at the end, partition by partition.
type distinctRows struct {
	types []*value.Type // the types of a row; its first values are the key
	table *hashTable
	held  held
	rest  *partitions // nil while no row is put off
	count int64       // the number of rows added
}

func newDistinct(keys, more []*value.Type) *distinctRows {
	return &distinctRows{types: slices.Concat(keys, more), table: newHashTable(keys)}
}

// add reports whether a row is the first with its key. If the row is put off, that is not yet known, and add returns false.
func (d *distinctRows) add(r *run, key []value.Value, more ...value.Value) (first bool, err error) {
	d.count++
	return d.addTagged(r, d.count, key, more)
}

// keepAll is add for rows that are never put off, even if the run has more than its share of memory.
func (d *distinctRows) keepAll(r *run, key []value.Value) (first bool, err error) {
	if _, first = d.table.find(key); first {
		err = r.memory.keepEntry(&d.held, key)
	}
	return first, err
}

func (d *distinctRows) addTagged(r *run, tag int64, key, more []value.Value) (first bool, err error) {
	h := d.table.hashOf(key)
	if d.table.firstHashed(key, h) >= 0 {
		return false, nil
	}
	if d.rest == nil && r.memory.full(d.held) {
		d.rest = &partitions{types: withTag(d.types)}
	}
	if d.rest != nil {
		row := append(append(make([]value.Value, 0, len(d.types)+1), key...), more...)
		return false, d.rest.add(r, h, row, value.OfInt64(tag))
	}
	d.table.addHashed(key, h)
	return true, r.memory.keepEntry(&d.held, key)
}

// reset forgets all rows.
func (d *distinctRows) reset(r *run) {
	d.table.clear()
	r.memory.release(&d.held)
	if d.rest != nil {
		d.rest.drop(r)
		d.rest = nil
	}
}

// putOff calls f for each row that was put off and is the first with its key, in the order in which the rows were added.
func (d *distinctRows) putOff(r *run, f func(row []value.Value) error) error {
	if d.rest == nil {
		return nil
	}
	out := newTagged(d.types)
	defer out.close(r)
	if err := d.separate(r, out); err != nil {
		return err
	}
	if err := out.finish(r); err != nil {
		return err
	}
	for {
		row, ok, err := out.nextRow()
		if !ok || err != nil {
			return err
		}
		if err := f(row[:len(d.types)]); err != nil {
			return err
		}
	}
}

// separate adds the first row of each key among those that were put off to out. It forgets the keys in memory.
func (d *distinctRows) separate(r *run, out *tagged) error {
	lists, err := d.rest.finish(r)
	if err != nil {
		return err
	}
	d.reset(r)
	for _, list := range lists {
		if list == nil {
			continue
		}
		if err := d.separateList(r, list, out); err != nil {
			return err
		}
	}
	return nil
}

func (d *distinctRows) separateList(r *run, list *spill.Rows, out *tagged) error {
	nk, n := len(d.table.types), len(d.types)
	part := &distinctRows{types: d.types, table: newHashTable(d.table.types)}
	defer part.reset(r)
	if err := out.begin(r); err != nil {
		return err
	}
	row := make([]value.Value, n+1)
	err := readLast(list, row, func() error {
		tag := row[n].AsInt64()
		first, err := part.addTagged(r, tag, row[:nk], row[nk:n])
		if err == nil && first {
			err = out.add(tag, row[:n])
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := out.end(); err != nil || part.rest == nil {
		return err
	}
	return part.separate(r, out)
}
