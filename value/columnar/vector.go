package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Viewer makes vectors from values of arrays. It reuses its memory for the next vector. The zero Viewer is ready for
// use.
type Viewer struct {
	vector value.Vector

	nulls, bools []bool
	ints         []int64
	floats       []float64
	decimals     []value.Decimal
	values       []value.Value
}

// View returns n values of an array, beginning at index from, as a vector of type t. The vector is valid until the next
// call of View, and no longer than the array is. The vector refers to the array's memory if the array has the layout of
// a vector of type t, and holds copies otherwise.
func (w *Viewer) View(a arrow.Array, t *value.Type, from, n int) (*value.Vector, error) {
	if e, ok := a.(array.ExtensionArray); ok {
		a = e.Storage()
	}
	w.vector = value.Vector{Type: t}
	if a.NullN() > 0 {
		w.vector.Nulls = w.nullsOf(a, from, n)
	}
	if w.viewNumbers(a, t.Kind, from, n) || w.viewText(a, t.Kind, from, n) {
		return &w.vector, nil
	}
	w.vector = value.Vector{Type: t, Nulls: w.vector.Nulls}
	w.values = sized(w.values, n)
	at := ValueAt
	if IsStored(a, t) {
		at = StoredValueAt
	}
	for i := range n {
		var err error
		if w.values[i], err = at(a, from+i, t); err != nil {
			return nil, err
		}
	}
	w.vector.Values = w.values
	return &w.vector, nil
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// nullsOf returns, for each of the n values of an array that begin at index from, whether the value is NULL.
func (w *Viewer) nullsOf(a arrow.Array, from, n int) []bool {
	w.nulls = sized(w.nulls, n)
	valid, at := a.NullBitmapBytes(), a.Data().Offset()+from
	for i := range w.nulls {
		w.nulls[i] = valid[(at+i)>>3]>>((at+i)&7)&1 == 0
	}
	return w.nulls
}

// viewNumbers makes the vector for numbers, BOOL, ENUM, DATE and TIMESTAMP. ok is false if the array has another type,
// or if its type does not belong to kind k.
func (w *Viewer) viewNumbers(a arrow.Array, k value.Kind, from, n int) (ok bool) {
	v := &w.vector
	switch a := a.(type) {
	case *array.Int64:
		v.Ints, ok = a.Int64Values()[from:from+n], k == value.Int64 || k == value.Enum
	case *array.Date32:
		w.ints = sized(w.ints, n)
		for i, d := range a.Date32Values()[from : from+n] {
			w.ints[i] = int64(d)
		}
		v.Ints, ok = w.ints, k == value.Date
	case *array.Timestamp:
		if ok = k == value.Timestamp && a.DataType().(*arrow.TimestampType).Unit == arrow.Nanosecond; ok {
			v.Ints = arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(a.TimestampValues()[from : from+n]))
		}
	case *array.Float64:
		v.Floats, ok = a.Float64Values()[from:from+n], k == value.Float64
	case *array.Float32:
		w.floats = sized(w.floats, n)
		for i, f := range a.Float32Values()[from : from+n] {
			w.floats[i] = float64(f)
		}
		v.Floats, ok = w.floats, k == value.Float32
	case *array.Boolean:
		w.bools = sized(w.bools, n)
		for i := range w.bools {
			w.bools[i] = a.Value(from + i)
		}
		v.Bools, ok = w.bools, k == value.Bool
	case *array.Decimal128:
		if ok = k == value.Numeric && a.DataType().(*arrow.Decimal128Type).Scale == numericScale; ok {
			w.decimals = sized(w.decimals, n)
			for i, d := range a.Values()[from : from+n] {
				w.decimals[i] = value.DecimalFromInt128(d.HighBits(), d.LowBits())
			}
			v.Decimals = w.decimals
		}
	}
	return ok
}

// viewText makes the vector for STRING, BYTES, JSON and PROTO. ok is false if the array or k is of another type.
func (w *Viewer) viewText(a arrow.Array, k value.Kind, from, n int) (ok bool) {
	if !value.KeepsTexts(k) {
		return false
	}
	switch a.(type) {
	case *array.String, *array.Binary:
		buffers, at := a.Data().Buffers(), a.Data().Offset()+from
		w.vector.Offsets = arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[at : at+n+1]
		if buffers[2] != nil {
			w.vector.Text = buffers[2].Bytes()
		}
		return true
	}
	return false
}
