// Package value holds GoogleSQL's types and values, and the three encodings of values: in keys, whose bytes sort as the
// values do (key.go), in stored rows (row.go), and as google.protobuf.Value on the wire (wire.go, fromwire.go). The
// package also reads and prints values as text.
//
// A Value is a small struct that is passed by value and never boxed in an interface. It contains numbers, times and
// booleans itself, and has a pointer to anything larger, such as a text or an array. The functions of the read path
// allocate no memory except that to which a decoded Value points.
//
// The errors of this package are simple texts that name the value and the type. A caller that reports such an error to
// a user adds, with package usererror, what the error means for the request. SQL's functions and casts are in sql/fn;
// this package has only what several packages need. A PROTO is stored as its bytes, like BYTES, and an ENUM as its
// number, like an INT64.
//
// Imports of this module: nothing.
package value

import (
	"math"
	"unsafe"
)

// Value is one GoogleSQL value, or NULL of some kind. The zero Value is an untyped NULL. Values are immutable: a caller
// that makes one from a byte slice or a slice of values must not change that memory afterwards.
//
// An ARRAY or STRUCT knows its elements but not their types. The Type is kept with the column or expression to which
// the value belongs.
type Value struct {
	// ref points to the bytes of STRING, BYTES, PROTO and JSON (normalised text), and to the first element of ARRAY
	// and STRUCT. For a UUID it points to a [16]byte, for an INTERVAL to an IntervalValue. For a NUMERIC it points to
	// a Decimal if the number does not fit into the field bits. Otherwise it is nil.
	ref unsafe.Pointer
	// bits holds an INT64, an ENUM, a BOOL (0, 1), the bits of a FLOAT64 or FLOAT32 (as float64), a DATE as days since
	// 1970-01-01, a TIMESTAMP as whole seconds since 1970, or a small NUMERIC as billionths. For STRING, BYTES, PROTO
	// and JSON it holds the number of bytes, for ARRAY and STRUCT the number of elements or fields.
	bits uint64
	// nanos is the fraction of a second of a TIMESTAMP in nanoseconds, 0 to 999,999,999.
	nanos uint32
	kind  Kind
	state state
}

type state uint8

const (
	stateNull    state = iota // the zero Value is NULL
	stateSet                  // a value that is not NULL
	statePending              // the commit timestamp of a transaction that has not committed yet
)

// Null returns the NULL of a kind.
func Null(k Kind) Value { return Value{kind: k} }

// The functions Of... make values. The methods As... return their contents. For NULL, these methods return zero or
// nothing. The caller must know the kind: calling the method of another kind would misread memory.

// OfBool makes a BOOL.
func OfBool(b bool) Value {
	v := Value{kind: Bool, state: stateSet}
	if b {
		v.bits = 1
	}
	return v
}

// OfInt64 makes an INT64.
func OfInt64(i int64) Value { return Value{kind: Int64, state: stateSet, bits: uint64(i)} }

// OfFloat64 makes a FLOAT64.
func OfFloat64(f float64) Value {
	return Value{kind: Float64, state: stateSet, bits: math.Float64bits(f)}
}

// OfFloat32 makes a FLOAT32.
func OfFloat32(f float32) Value {
	return Value{kind: Float32, state: stateSet, bits: math.Float64bits(float64(f))}
}

// OfDate makes a DATE from days since 1970-01-01.
func OfDate(days int32) Value { return Value{kind: Date, state: stateSet, bits: uint64(int64(days))} }

// OfTimestamp makes a TIMESTAMP from seconds since 1970-01-01T00:00:00Z and nanoseconds (0 to 999,999,999).
func OfTimestamp(seconds int64, nanos int32) Value {
	return Value{kind: Timestamp, state: stateSet, bits: uint64(seconds), nanos: uint32(nanos)}
}

// PendingCommitTimestamp returns a placeholder for the commit timestamp of the transaction that writes this value. Its
// kind is TIMESTAMP.
func PendingCommitTimestamp() Value { return Value{kind: Timestamp, state: statePending} }

// OfString makes a STRING; s must be valid UTF-8.
func OfString(s string) Value { return ofText(String, s) }

// OfJSON makes a JSON value from normalised text (see ParseJSON).
func OfJSON(normalised string) Value { return ofText(JSON, normalised) }

// OfBytes makes a BYTES value. The caller must not change b afterwards.
func OfBytes(b []byte) Value {
	return Value{kind: Bytes, state: stateSet, ref: unsafe.Pointer(unsafe.SliceData(b)), bits: uint64(len(b))}
}

// OfProto makes a PROTO from a serialized message. The caller must not change b afterwards.
func OfProto(b []byte) Value {
	v := OfBytes(b)
	v.kind = Proto
	return v
}

// Own returns v with a copy of its text or bytes, if v is a STRING, BYTES, PROTO or JSON. It returns any other value
// unchanged.
func (v Value) Own() Value {
	if v.state == stateSet && KeepsTexts(v.kind) {
		b := make([]byte, v.bits)
		copy(b, v.AsBytes())
		v.ref = unsafe.Pointer(unsafe.SliceData(b))
	}
	return v
}

// OfEnum makes an ENUM from its number.
func OfEnum(number int32) Value {
	return Value{kind: Enum, state: stateSet, bits: uint64(int64(number))}
}

// OfArray makes an ARRAY. The caller must not change elems afterwards.
func OfArray(elems []Value) Value { return ofList(Array, elems) }

// OfStruct makes a STRUCT. The caller must not change fields afterwards.
func OfStruct(fields []Value) Value { return ofList(Struct, fields) }

// OfUUID makes a UUID.
func OfUUID(u [16]byte) Value {
	return Value{kind: UUID, state: stateSet, ref: unsafe.Pointer(&u)}
}

// OfNumeric makes a NUMERIC. It allocates memory only if the number of billionths does not fit into 64 bits.
func OfNumeric(d Decimal) Value {
	v := Value{kind: Numeric, state: stateSet, bits: d.lo}
	if d.hi != int64(d.lo)>>63 {
		v.ref = unsafe.Pointer(&Decimal{d.hi, d.lo})
	}
	return v
}

// OfInterval makes an INTERVAL.
func OfInterval(i IntervalValue) Value {
	return Value{kind: Interval, state: stateSet, ref: unsafe.Pointer(&i)}
}

func ofText(k Kind, s string) Value {
	return Value{kind: k, state: stateSet, ref: unsafe.Pointer(unsafe.StringData(s)), bits: uint64(len(s))}
}

func ofList(k Kind, vs []Value) Value {
	return Value{kind: k, state: stateSet, ref: unsafe.Pointer(unsafe.SliceData(vs)), bits: uint64(len(vs))}
}

// Kind returns the kind of the value; a NULL has a kind, too. The kind of the zero Value is Invalid.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is NULL.
func (v Value) IsNull() bool { return v.state == stateNull }

// IsPending reports whether the value is a commit timestamp that is not yet known.
func (v Value) IsPending() bool { return v.state == statePending }

// AsBool returns the value of a BOOL.
func (v Value) AsBool() bool { return v.bits != 0 }

// AsInt64 returns an INT64, or the number of an ENUM.
func (v Value) AsInt64() int64 { return int64(v.bits) }

// AsFloat64 returns a FLOAT64, or a FLOAT32 widened to float64.
func (v Value) AsFloat64() float64 { return math.Float64frombits(v.bits) }

// AsFloat32 returns a FLOAT32.
func (v Value) AsFloat32() float32 { return float32(math.Float64frombits(v.bits)) }

// AsDate returns a DATE as the number of days since 1970-01-01.
func (v Value) AsDate() int32 { return int32(int64(v.bits)) }

// AsTimestamp returns a TIMESTAMP as whole seconds since 1970 and the nanoseconds after these seconds.
func (v Value) AsTimestamp() (seconds int64, nanos int32) { return int64(v.bits), int32(v.nanos) }

// AsString returns the text of a STRING or JSON.
func (v Value) AsString() string { return unsafe.String((*byte)(v.ref), int(v.bits)) }

// AsBytes returns the bytes of a BYTES or PROTO, or the text of a STRING or JSON. The caller must not change them.
func (v Value) AsBytes() []byte { return unsafe.Slice((*byte)(v.ref), int(v.bits)) }

// AsList returns the elements of an ARRAY or the fields of a STRUCT. The caller must not change them.
func (v Value) AsList() []Value { return unsafe.Slice((*Value)(v.ref), int(v.bits)) }

// AsUUID returns the 16 bytes of a UUID.
func (v Value) AsUUID() [16]byte {
	if v.ref == nil {
		return [16]byte{}
	}
	return *(*[16]byte)(v.ref)
}

// AsNumeric returns the number of a NUMERIC.
func (v Value) AsNumeric() Decimal {
	if v.ref != nil {
		return *(*Decimal)(v.ref)
	}
	return Decimal{hi: int64(v.bits) >> 63, lo: v.bits}
}

// AsInterval returns the parts of an INTERVAL.
func (v Value) AsInterval() IntervalValue {
	if v.ref == nil {
		return IntervalValue{}
	}
	return *(*IntervalValue)(v.ref)
}
