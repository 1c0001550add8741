package value

import (
	"math"
	"time"
	"unsafe"
)

// A Vector holds values of one type. The type determines which slice holds them; the others are nil:
//
//	INT64, ENUM, DATE       Ints: the number, the days since 1970-01-01
//	TIMESTAMP               Ints (the nanoseconds since 1970) or Values; the maker of the Vector chooses
//	FLOAT64, FLOAT32        Floats
//	BOOL                    Bools
//	STRING, BYTES, JSON,
//	PROTO                   Offsets and Text, as Apache Arrow lays them out: value i is Text[Offsets[i]:Offsets[i+1]]
//	NUMERIC                 Decimals
//	all others              Values
//
// For a NULL, the element of the slice has no meaning, but Offsets are always valid. A Vector may refer to memory that
// is reused later; the function that returns the Vector says how long it is valid.
type Vector struct {
	Type  *Type
	Nulls []bool // whether each value is NULL; nil if none is

	Ints     []int64
	Floats   []float64
	Bools    []bool
	Offsets  []int32
	Text     []byte
	Decimals []Decimal
	Values   []Value
}

// IsNull reports whether value i is NULL.
func (v *Vector) IsNull(i int) bool { return v.Nulls != nil && v.Nulls[i] }

// At returns value i. The returned Value does not refer to the memory of v.Text.
func (v *Vector) At(i int) Value {
	if v.Offsets != nil && !v.IsNull(i) {
		return ofText(v.Type.Kind, string(v.TextAt(i)))
	}
	return v.Peek(i)
}

// Peek returns value i without copying it. The value is valid as long as the vector is.
func (v *Vector) Peek(i int) Value {
	switch {
	case v.Nulls != nil && v.Nulls[i]:
		return Null(v.Type.Kind)
	case v.Ints != nil:
		if v.Type.Kind == Timestamp {
			return OfUnixNanos(v.Ints[i])
		}
		return Value{kind: v.Type.Kind, state: stateSet, bits: uint64(v.Ints[i])}
	case v.Floats != nil:
		return Value{kind: v.Type.Kind, state: stateSet, bits: math.Float64bits(v.Floats[i])}
	case v.Bools != nil:
		return OfBool(v.Bools[i])
	case v.Offsets != nil:
		return ofText(v.Type.Kind, v.StringAt(i))
	case v.Decimals != nil:
		return OfNumeric(v.Decimals[i])
	}
	return v.Values[i]
}

// TextAt returns the bytes of value i of a vector of texts. The caller must not change them.
func (v *Vector) TextAt(i int) []byte { return v.Text[v.Offsets[i]:v.Offsets[i+1]] }

// StringAt returns the text of value i as a string. It is valid as long as the vector is.
func (v *Vector) StringAt(i int) string {
	b := v.Text[v.Offsets[i]:v.Offsets[i+1]]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Put copies the values with the given indexes to dst: value rows[k] to dst[k*stride]. The copies do not refer to the
// vector's memory, but several copies may share one allocation.
func (v *Vector) Put(dst []Value, stride int, rows []int32) {
	switch {
	case v.Offsets != nil:
		v.putText(dst, stride, rows)
	case v.Ints != nil && v.Type.Kind != Timestamp:
		for k, i := range rows {
			dst[k*stride] = Value{kind: v.Type.Kind, state: stateSet, bits: uint64(v.Ints[i])}
		}
		v.putNulls(dst, stride, rows)
	case v.Floats != nil:
		for k, i := range rows {
			dst[k*stride] = Value{kind: v.Type.Kind, state: stateSet, bits: math.Float64bits(v.Floats[i])}
		}
		v.putNulls(dst, stride, rows)
	default:
		for k, i := range rows {
			dst[k*stride] = v.Peek(int(i))
		}
	}
}

// putNulls writes the NULLs among the values that Put copies.
func (v *Vector) putNulls(dst []Value, stride int, rows []int32) {
	if v.Nulls == nil {
		return
	}
	for k, i := range rows {
		if v.Nulls[i] {
			dst[k*stride] = Null(v.Type.Kind)
		}
	}
}

// textChunk is the largest size, in bytes, of the chunks of memory in which putText puts short texts. A text that lives
// long keeps its whole chunk in memory, so chunks are small.
const textChunk = 4 << 10

// putText copies the texts among the values that Put copies. Short texts share chunks of memory.
func (v *Vector) putText(dst []Value, stride int, rows []int32) {
	var chunk []byte
	for k, i := range rows {
		if v.IsNull(int(i)) {
			dst[k*stride] = Null(v.Type.Kind)
			continue
		}
		text := v.TextAt(int(i))
		if len(text) > textChunk/4 {
			dst[k*stride] = ofText(v.Type.Kind, string(text))
			continue
		}
		if len(text) > cap(chunk)-len(chunk) {
			chunk = make([]byte, 0, min(textChunk, max(len(text), len(v.Text))))
		}
		from := len(chunk)
		chunk = append(chunk, text...)
		dst[k*stride] = ofText(v.Type.Kind, unsafe.String(unsafe.SliceData(chunk[from:]), len(text)))
	}
}

// OfUnixNanos makes a TIMESTAMP from nanoseconds since 1970-01-01T00:00:00Z.
func OfUnixNanos(nanos int64) Value {
	seconds, rest := nanos/int64(time.Second), nanos%int64(time.Second)
	if rest < 0 {
		seconds, rest = seconds-1, rest+int64(time.Second)
	}
	return OfTimestamp(seconds, int32(rest))
}

// UnixNanos returns a TIMESTAMP in nanoseconds since 1970-01-01T00:00:00Z. ok is false if that number does not fit
// into 64 bits (before 1677 and after 2262), and for a pending timestamp.
func (v Value) UnixNanos() (nanos int64, ok bool) {
	seconds, rest := v.AsTimestamp()
	nanos = seconds*int64(time.Second) + int64(rest)
	return nanos, !v.IsPending() && seconds > math.MinInt64/int64(time.Second) && seconds < math.MaxInt64/int64(time.Second)
}

// KeepsTexts reports whether a Vector holds values of the kind in Offsets and Text.
func KeepsTexts(k Kind) bool { return k == String || k == Bytes || k == JSON || k == Proto }
