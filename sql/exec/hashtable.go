package exec

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// hashTable is a hash table of keys of several values. Keys are equal if GROUP BY treats them as equal. Several entries
// can have equal keys. The entries are numbered in the order in which they are added. All entries whose keys have the
// same hash form a linked list in the order of their numbers.
type hashTable struct {
	hasher
	slots []hashSlot    // open addressing with linear probing; the number of slots is a power of two, or 0
	used  int           // the number of slots in use
	next  []int32       // for each entry, 1 + the number of the next entry with the same hash; 0 if there is none
	keys  []value.Value // the keys of all entries, one after the other, with len(types) values each

	hashes []uint64 // memory for the hashes of the rows of a batch
}

// hashSlot holds the linked list of the entries whose keys have one hash.
type hashSlot struct {
	hash       uint64
	head, tail int32 // 1 + the numbers of the first and the last entry of the list; 0 if the slot is free
}

const (
	firstSlots = 16
	// keptSlots is the greatest number of slots that a cleared table reuses. Clearing more slots takes longer than
	// allocating new ones.
	keptSlots = 256
)

// entryBytes is the greatest number of bytes of memory that an entry takes in addition to its key. These bytes are in
// the table's fields slots and next, and in the unused capacity of slices that have grown. The field slots takes the
// most bytes for each entry right after it has doubled: only three eighths of its slots (of 16 bytes each) are then in
// use, and the old slots still exist.
const entryBytes = 80

func newHashTable(types []*value.Type) *hashTable { return &hashTable{hasher: newHasher(types)} }

// hasher hashes keys of several values. Keys that are equal (as GROUP BY compares) have the same hash.
type hasher struct {
	types []*value.Type
	one   keyForm // the form of the value in keys of one value; anyKey for longer keys
	seed  maphash.Seed
	mix   uint64 // a random number, the second argument of mixed
	hash  maphash.Hash
}

// keyForm tells how a value of a key is hashed and compared.
type keyForm uint8

const (
	anyKey   keyForm = iota
	wholeKey         // INT64, ENUM, DATE or BOOL
	textKey          // STRING or BYTES
)

func formOf(t *value.Type) keyForm {
	switch t.Kind {
	case value.Int64, value.Date, value.Bool, value.Enum:
		return wholeKey
	case value.String, value.Bytes:
		return textKey
	}
	return anyKey
}

func newHasher(types []*value.Type) hasher {
	t := hasher{types: types, seed: maphash.MakeSeed()}
	t.mix = maphash.Comparable(t.seed, uint64(0))
	if len(types) == 1 {
		t.one = formOf(types[0])
	}
	return t
}

func (t *hashTable) clear() {
	if len(t.slots) > keptSlots {
		t.slots = nil
	}
	clear(t.slots)
	t.used, t.next, t.keys = 0, t.next[:0], t.keys[:0]
}

func (t *hashTable) len() int { return len(t.next) }

func (t *hashTable) key(entry int) []value.Value {
	n := len(t.types)
	return t.keys[entry*n : entry*n+n]
}

func (t *hasher) hashOf(key []value.Value) uint64 {
	if len(key) == 1 {
		h := t.part(key[0], t.types[0])
		if t.one == wholeKey {
			h = mixed(t.mix^h, t.mix)
		}
		return h
	}
	h := t.mix
	for i := range key {
		h = mixed(h^t.part(key[i], t.types[i]), t.mix)
	}
	return h
}

// nullPart is the hash of NULL, which the method part returns.
const nullPart = 0x9e3779b97f4a7c15

// part returns a hash of one value of a key. hashOf combines the hashes of a key's values to the hash of the key.
func (t *hasher) part(v value.Value, typ *value.Type) uint64 {
	if v.IsNull() {
		return nullPart
	}
	switch formOf(typ) {
	case wholeKey:
		return uint64(v.AsInt64())
	case textKey:
		return maphash.String(t.seed, v.AsString())
	}
	t.hash.SetSeed(t.seed)
	value.Hash(&t.hash, v, typ)
	return t.hash.Sum64()
}

// mixed returns a hash of an integer, as wyhash does (https://github.com/wangyi-fudan/wyhash): it multiplies two
// integers to 128 bits and combines the halves of the product with XOR, and does this twice.
func mixed(x, seed uint64) uint64 {
	const odd = 0xa0761d6478bd642f
	hi, lo := bits.Mul64(x^seed, odd)
	hi, lo = bits.Mul64(hi^lo^seed, odd)
	return hi ^ lo
}

func (t *hasher) equal(a, b []value.Value) bool {
	if t.one == wholeKey {
		return a[0].AsInt64() == b[0].AsInt64() && a[0].IsNull() == b[0].IsNull()
	}
	for i := range a {
		if !value.Equal(a[i], b[i], t.types[i]) {
			return false
		}
	}
	return true
}

// slot returns the slot with hash h. If there is none, it returns the free slot where h belongs.
func (t *hashTable) slot(h uint64) *hashSlot {
	last := uint64(len(t.slots) - 1)
	at := h & last
	for t.slots[at].head != 0 && t.slots[at].hash != h {
		at = (at + 1) & last
	}
	return &t.slots[at]
}

// widen doubles the number of slots if three quarters of them are in use, so that there is a free slot for one more
// hash.
func (t *hashTable) widen() {
	if 4*t.used < 3*len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]hashSlot, max(firstSlots, 2*len(old)))
	for i := range old {
		if old[i].head != 0 {
			*t.slot(old[i].hash) = old[i]
		}
	}
}

// add appends an entry with a copy of key and returns the entry's number.
func (t *hashTable) add(key []value.Value) int { return t.addHashed(key, t.hashOf(key)) }

func (t *hashTable) addHashed(key []value.Value, h uint64) int {
	t.widen()
	entry := len(t.next)
	t.keys = append(t.keys, key...)
	t.next = append(t.next, 0)
	s := t.slot(h)
	if s.head != 0 {
		t.next[s.tail-1] = int32(entry + 1)
	} else {
		*s = hashSlot{hash: h, head: int32(entry + 1)}
		t.used++
	}
	s.tail = int32(entry + 1)
	return entry
}

// first returns the first entry with this key, or -1 if there is none. The method after returns the next entry with
// the same key.
func (t *hashTable) first(key []value.Value) int { return t.firstHashed(key, t.hashOf(key)) }

func (t *hashTable) firstHashed(key []value.Value, h uint64) int {
	if len(t.slots) == 0 {
		return -1
	}
	return t.match(key, t.slot(h).head)
}

func (t *hashTable) after(entry int, key []value.Value) int { return t.match(key, t.next[entry]) }

func (t *hashTable) match(key []value.Value, at int32) int {
	for ; at != 0; at = t.next[at-1] {
		if t.equal(t.key(int(at-1)), key) {
			return int(at - 1)
		}
	}
	return -1
}

// find returns the entry of a key. If the table has no such entry, find adds one and sets isNew.
func (t *hashTable) find(key []value.Value) (entry int, isNew bool) {
	h := t.hashOf(key)
	if entry := t.firstHashed(key, h); entry >= 0 {
		return entry, false
	}
	return t.addHashed(key, h), true
}

// lookup sets entries[i], for each place i of places, to an entry whose key is the key at place i of cols, or to -1.
// It looks only at the first entry with the same hash. So -1 does not mean that the key is missing, and the caller
// must then look the key up itself. span is the length of the columns.
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

// addParts combines the hashes of keys with one more value of each key: for each place i of places, it combines
// t.hashes[i] with the value of col at i, as hashOf does.
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

// verify sets entries[i] to -1 if value j of that entry's key differs from the value of col at place i. entries[i] is
// only the first entry with the hash of the key at place i. A later entry with this hash may have that key; lookup
// leaves it to its caller to find that entry.
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
