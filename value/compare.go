package value

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
)

// Compare orders two values of type t as ORDER BY does, ascending: NULL first, NaN before all numbers, STRING by code
// point, FALSE before TRUE, ARRAY and STRUCT element by element. It returns 0 for values that GROUP BY puts into one
// group: for two NULLs, for two NaNs, and for 0 and -0. SQL does not order JSON and PROTO; Compare orders them by their
// bytes.
func Compare(a, b Value, t *Type) int {
	if a.state != b.state || a.state != stateSet {
		return cmp.Compare(a.state, b.state) // NULL sorts first, a pending commit timestamp last
	}
	switch t.Kind {
	case Int64, Date, Enum:
		return cmp.Compare(int64(a.bits), int64(b.bits))
	case Float64, Float32:
		return cmp.Compare(a.AsFloat64(), b.AsFloat64())
	case Timestamp:
		if c := cmp.Compare(int64(a.bits), int64(b.bits)); c != 0 {
			return c
		}
		return cmp.Compare(a.nanos, b.nanos)
	case Bool:
		return cmp.Compare(a.bits, b.bits)
	case String, Bytes, JSON, Proto:
		return bytes.Compare(a.AsBytes(), b.AsBytes())
	case Numeric:
		return a.AsNumeric().Cmp(b.AsNumeric())
	case UUID:
		x, y := a.AsUUID(), b.AsUUID()
		return bytes.Compare(x[:], y[:])
	case Interval:
		return a.AsInterval().Cmp(b.AsInterval())
	case Array:
		return compareArrays(a.AsList(), b.AsList(), t.Elem)
	case Struct:
		return compareStructs(a.AsList(), b.AsList(), t.Fields)
	}
	return 0
}

func compareArrays(a, b []Value, elem *Type) int {
	for i := range min(len(a), len(b)) {
		if c := Compare(a[i], b[i], elem); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareStructs(a, b []Value, fields []Field) int {
	for i := range min(len(a), len(b)) {
		if c := Compare(a[i], b[i], fields[i].Type); c != 0 {
			return c
		}
	}
	return 0
}

// Equal reports whether GROUP BY and DISTINCT treat a and b as one value: NULL equals NULL, and NaN equals NaN.
func Equal(a, b Value, t *Type) bool {
	switch t.Kind {
	case String, Bytes, JSON, Proto:
		return a.state == b.state && a.bits == b.bits && bytes.Equal(a.AsBytes(), b.AsBytes())
	case Array:
		return a.state == b.state && a.bits == b.bits && Compare(a, b, t) == 0
	}
	return Compare(a, b, t) == 0
}

// Same reports whether rows store a and b as the same bytes. Two values can be Equal but not Same: for example 0 and
// -0, NaNs with different bits, or the intervals of 1 month and of 30 days. To find out whether a value has changed,
// use Same, not Equal.
func Same(a, b Value, t *Type) bool {
	if a.state != b.state || a.state != stateSet {
		return a.state == b.state
	}
	switch t.Kind {
	case Float64, Float32:
		return a.bits == b.bits
	case Interval:
		return a.AsInterval() == b.AsInterval()
	case Array:
		return sameLists(a.AsList(), b.AsList(), func(int) *Type { return t.Elem })
	case Struct:
		return sameLists(a.AsList(), b.AsList(), func(i int) *Type { return t.Fields[i].Type })
	}
	return Equal(a, b, t)
}

func sameLists(a, b []Value, typeOf func(int) *Type) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Same(a[i], b[i], typeOf(i)) {
			return false
		}
	}
	return true
}

// Hash adds v to the hash h. Values that are Equal add the same bytes.
func Hash(h *maphash.Hash, v Value, t *Type) {
	h.WriteByte(byte(v.state))
	if v.state != stateSet {
		return
	}
	switch t.Kind {
	case Int64, Date, Bool, Enum:
		writeUint64(h, v.bits)
	case Float64, Float32:
		writeUint64(h, orderedFloat64(v.AsFloat64()))
	case Timestamp:
		writeUint64(h, v.bits)
		writeUint64(h, uint64(v.nanos))
	case String, Bytes, JSON, Proto:
		writeUint64(h, v.bits)
		h.Write(v.AsBytes())
	case Numeric:
		d := v.AsNumeric()
		writeUint64(h, uint64(d.hi))
		writeUint64(h, d.lo)
	case UUID:
		u := v.AsUUID()
		h.Write(u[:])
	case Interval:
		seconds, nanos := v.AsInterval().total()
		writeUint64(h, uint64(seconds))
		writeUint64(h, uint64(nanos))
	case Array:
		writeUint64(h, v.bits)
		for _, e := range v.AsList() {
			Hash(h, e, t.Elem)
		}
	case Struct:
		for i, f := range v.AsList() {
			Hash(h, f, t.Fields[i].Type)
		}
	}
}

func writeUint64(h *maphash.Hash, u uint64) {
	maphash.WriteComparable(h, u)
}

// SQLEqual evaluates a = b as SQL does. a and b must not be NULL. The result null says that a = b is NULL, which can
// happen only if an ARRAY or STRUCT contains a NULL. NaN equals no value, not even NaN.
func SQLEqual(a, b Value, t *Type) (equal, null bool) {
	switch t.Kind {
	case Float64, Float32:
		return a.AsFloat64() == b.AsFloat64(), false
	case Array:
		if a.bits != b.bits {
			return false, false
		}
		return sqlEqualLists(a.AsList(), b.AsList(), func(int) *Type { return t.Elem })
	case Struct:
		return sqlEqualLists(a.AsList(), b.AsList(), func(i int) *Type { return t.Fields[i].Type })
	}
	return Compare(a, b, t) == 0, false
}

// sqlEqualLists compares two lists of the same length. If one pair of elements differs, the result is FALSE, even if
// other pairs contain NULLs.
func sqlEqualLists(a, b []Value, typeOf func(int) *Type) (equal, null bool) {
	for i := range a {
		if a[i].IsNull() || b[i].IsNull() {
			null = true
			continue
		}
		eq, n := SQLEqual(a[i], b[i], typeOf(i))
		if !eq && !n {
			return false, false
		}
		null = null || n
	}
	return !null, null
}

// IsNaN reports whether a FLOAT64 or FLOAT32 is NaN.
func (v Value) IsNaN() bool { return math.IsNaN(v.AsFloat64()) }
