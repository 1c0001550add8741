package value

import (
	"encoding/binary"
	"math"
)

// A VectorBuilder is a Column that collects values in a Vector. It reuses its memory for the next Vector.
type VectorBuilder struct {
	vector Vector
	form   vectorForm
	n      int
	nulls  []bool
	room   []byte // buffer for the text of key parts (see KeyText)
}

// vectorForm says which slice of a Vector holds the values.
type vectorForm uint8

const (
	inValues vectorForm = iota
	inInts
	inFloats
	inBools
	inText
	inDecimals
)

// NewVectorBuilder makes an empty builder for values of a type.
func NewVectorBuilder(t *Type) *VectorBuilder {
	b := &VectorBuilder{vector: Vector{Type: t}}
	switch t.Kind {
	case Int64, Date, Enum:
		b.form = inInts
	case Float64, Float32:
		b.form = inFloats
	case Bool:
		b.form = inBools
	case String, Bytes, JSON, Proto:
		b.form = inText
		b.vector.Offsets = []int32{0}
	case Numeric:
		b.form = inDecimals
	}
	return b
}

// Vector returns the values that were appended. It is valid until Reset.
func (b *VectorBuilder) Vector() *Vector { return &b.vector }

// keptText is the largest text buffer, in bytes, that Reset keeps for reuse.
const keptText = 4 << 20

// Reset empties the builder.
func (b *VectorBuilder) Reset() {
	b.n, b.nulls = 0, b.nulls[:0]
	v := &b.vector
	v.Nulls, v.Ints, v.Floats, v.Bools, v.Text, v.Decimals = nil, v.Ints[:0], v.Floats[:0], v.Bools[:0], v.Text[:0], v.Decimals[:0]
	clear(v.Values)
	v.Values = v.Values[:0]
	if b.form == inText {
		v.Offsets = v.Offsets[:1]
	}
	if cap(v.Text) > keptText {
		v.Text = nil
	}
}

// AppendNull implements Column.
func (b *VectorBuilder) AppendNull() {
	if b.vector.Nulls == nil {
		b.nulls = append(b.nulls[:0], make([]bool, b.n)...)
	}
	b.append(Null(b.vector.Type.Kind))
	if len(b.nulls) < b.n {
		b.nulls = append(b.nulls, false)
	}
	b.nulls[b.n-1] = true
	b.vector.Nulls = b.nulls
}

// next counts the value that the caller has just appended, and records that it is not NULL.
func (b *VectorBuilder) next() {
	b.n++
	if b.vector.Nulls != nil {
		b.nulls = append(b.nulls, false)
		b.vector.Nulls = b.nulls
	}
}

// AppendRow implements Column.
func (b *VectorBuilder) AppendRow(payload []byte) error {
	v := &b.vector
	switch v.Type.Kind {
	case Int64:
		if i, n := binary.Varint(payload); n > 0 && n == len(payload) {
			v.Ints = append(v.Ints, i)
			b.next()
			return nil
		}
	case Float64:
		if len(payload) == 8 {
			v.Floats = append(v.Floats, math.Float64frombits(binary.LittleEndian.Uint64(payload)))
			b.next()
			return nil
		}
	case String, Bytes, JSON, Proto:
		b.appendText(payload)
		return nil
	case Numeric:
		if d, ok := rowDecimal(payload); ok {
			v.Decimals = append(v.Decimals, d)
			b.next()
			return nil
		}
	}
	x, err := DecodeRow(payload, v.Type)
	if err == nil {
		b.append(x)
	}
	return err
}

// AppendKey implements Column.
func (b *VectorBuilder) AppendKey(key []byte, desc bool) error {
	v := &b.vector
	switch b.form {
	case inInts:
		if i, ok := KeyInt64(key, desc); ok && v.Type.Kind == Int64 {
			v.Ints = append(v.Ints, i)
			b.next()
			return nil
		}
	case inText:
		text, room, null, err := KeyText(key, b.room, v.Type, desc)
		b.room = room
		if err == nil && !null {
			b.appendText(text)
			return nil
		}
	}
	x, _, err := DecodeKey(key, v.Type, desc)
	if err == nil {
		err = b.AppendValue(x)
	}
	return err
}

// AppendValue implements Column.
func (b *VectorBuilder) AppendValue(v Value) error {
	if v.IsNull() {
		b.AppendNull()
	} else {
		b.append(v)
	}
	return nil
}

func (b *VectorBuilder) appendText(text []byte) {
	v := &b.vector
	v.Text = append(v.Text, text...)
	v.Offsets = append(v.Offsets, int32(len(v.Text)))
	b.next()
}

// append appends x to the slice in which the Vector holds values of its type. For NULL it appends a placeholder.
func (b *VectorBuilder) append(x Value) {
	v := &b.vector
	switch b.form {
	case inInts:
		v.Ints = append(v.Ints, x.AsInt64())
	case inFloats:
		v.Floats = append(v.Floats, x.AsFloat64())
	case inBools:
		v.Bools = append(v.Bools, x.AsBool())
	case inText:
		b.appendText(x.AsBytes())
		return
	case inDecimals:
		v.Decimals = append(v.Decimals, x.AsNumeric())
	default:
		v.Values = append(v.Values, x)
	}
	b.next()
}
