package exec

import (
	"hash/maphash"
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// lookup finds an entry for each row at places, whose key is in cols. It sets entries[i] to the entry with the key at place i. It sets -1 if there
// is none, or if another key has the same hash. The columns have span places.
func (t *hashTable) lookup(cols []fn.Column, span int, places, entries []int32) {
	if len(t.slots) == 0 {
		for _, i := range places {
			entries[i] = -1
		}
		return
	}
	t.hashes = slices.Grow(t.hashes[:0], span)[:span]
	for _, i := range places {
		t.hashes[i] = t.mix
	}
	for j := range cols {
		t.addParts(&cols[j], t.types[j], places)
	}
	last := uint64(len(t.slots) - 1)
	for _, i := range places {
		h := t.hashes[i]
		at := h & last
		for t.slots[at].head != 0 && t.slots[at].hash != h {
			at = (at + 1) & last
		}
		entries[i] = t.slots[at].head - 1
	}
	for j := range cols {
		t.verify(j, &cols[j], places, entries)
	}
}

// addParts mixes the values of a column into hashes, as hashOf does.
func (t *hashTable) addParts(col *fn.Column, typ *value.Type, places []int32) {
	switch v := col.Vector; {
	case v == nil || v.Nulls != nil:
	case v.Ints != nil && formOf(typ) == wholeKey:
		for _, i := range places {
			t.hashes[i] = mixed(t.hashes[i]^uint64(v.Ints[i]), t.mix)
		}
		return
	case v.Offsets != nil && t.one == textKey:
		for _, i := range places {
			t.hashes[i] = maphash.Bytes(t.seed, v.TextAt(int(i)))
		}
		return
	case v.Offsets != nil && formOf(typ) == textKey:
		for _, i := range places {
			t.hashes[i] = mixed(t.hashes[i]^maphash.Bytes(t.seed, v.TextAt(int(i))), t.mix)
		}
		return
	}
	if len(t.types) == 1 && t.one != wholeKey {
		for _, i := range places {
			t.hashes[i] = t.part(col.Peek(int(i)), typ)
		}
		return
	}
	for _, i := range places {
		t.hashes[i] = mixed(t.hashes[i]^t.part(col.Peek(int(i)), typ), t.mix)
	}
}

// verify sets entries[i] to -1 if the entry's key differs from column j at place i. Only the first entry with the hash is compared; the right one
// may be behind it.
func (t *hashTable) verify(j int, col *fn.Column, places, entries []int32) {
	n := len(t.types)
	switch v := col.Vector; {
	case v == nil || v.Nulls != nil:
	case v.Ints != nil && formOf(t.types[j]) == wholeKey:
		for _, i := range places {
			if e := entries[i]; e >= 0 {
				if k := &t.keys[int(e)*n+j]; k.AsInt64() != v.Ints[i] || k.IsNull() {
					entries[i] = -1
				}
			}
		}
		return
	case v.Offsets != nil && formOf(t.types[j]) == textKey:
		for _, i := range places {
			if e := entries[i]; e >= 0 {
				if k := &t.keys[int(e)*n+j]; k.IsNull() || k.AsString() != v.StringAt(int(i)) {
					entries[i] = -1
				}
			}
		}
		return
	}
	for _, i := range places {
		if e := entries[i]; e >= 0 && !value.Equal(t.keys[int(e)*n+j], col.Peek(int(i)), t.types[j]) {
			entries[i] = -1
		}
	}
}
