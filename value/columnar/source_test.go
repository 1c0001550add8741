package columnar

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestSource checks that a source gives the values of an array, or of a slice of an array, in the same stored forms as
// package value does.
func TestSource(t *testing.T) {
	for _, s := range samples {
		b := NewBatch([]Column{{Name: "c", Type: s.typ}}, Options{})
		var all []value.Value
		for i := range 50 {
			v := s.values[i%len(s.values)]
			if i%7 == 3 {
				v = value.Null(s.typ.Kind)
			}
			all = append(all, v)
			if err := b.Columns[0].AppendValue(v); err != nil {
				t.Fatal(err)
			}
		}
		record := b.Record(len(all))
		for _, part := range [][2]int{{0, 50}, {11, 37}, {5, 5}} {
			source, err := NewSource(record.NewSlice(int64(part[0]), int64(part[1])).Column(0), s.typ)
			if err != nil {
				t.Fatalf("%s: %v", s.typ, err)
			}
			for row, v := range all[part[0]:part[1]] {
				if source.IsNull(row) != v.IsNull() || !bytes.Equal(source.Value(row).AppendWire(nil, s.typ), v.AppendWire(nil, s.typ)) {
					t.Fatalf("%s, %v, row %d: the value differs", s.typ, part, row)
				}
				for _, desc := range []bool{false, true} {
					if s.key && !bytes.Equal(source.AppendKey([]byte("x"), row, desc), value.AppendKey([]byte("x"), v, desc)) {
						t.Errorf("%s, %v, row %d: the key differs", s.typ, part, row)
					}
				}
				if v.IsNull() {
					continue
				}
				if !bytes.Equal(source.AppendRow([]byte("x"), row), value.AppendRow([]byte("x"), v, s.typ)) || source.RowSize(row) != value.RowSize(v, s.typ) {
					t.Errorf("%s, %v, row %d: the stored form differs", s.typ, part, row)
				}
			}
		}
	}
}

// TestNullType checks that a source over an array of Arrow's null type, which has no validity bitmap, gives NULLs of
// the wanted type.
func TestNullType(t *testing.T) {
	nothing := array.NewNull(2)
	for _, typ := range []*value.Type{value.Int64Type, value.StringType, value.TimestampType} {
		source, err := NewSource(nothing, typ)
		if err != nil || !source.IsNull(0) || !source.IsNull(1) {
			t.Errorf("%s: %v", typ, err)
		}
		if v, err := ValueAt(nothing, 1, typ); err != nil || !v.IsNull() {
			t.Errorf("%s: %v, %v", typ, v, err)
		}
	}
}

// TestSourceShort checks that IsShort is true exactly for texts that are valid UTF-8 and have at most limit bytes, and
// that a limit of 0 allows any length.
func TestSourceShort(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues([]string{"abc", "éé", "\xff", ""}, nil)
	s, err := NewSource(b.NewArray(), value.StringType)
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range []bool{true, false, false, true} {
		if got := s.IsShort(row, 3); got != want {
			t.Errorf("row %d: %v", row, got)
		}
	}
	if !s.IsShort(1, 0) || s.IsShort(2, 0) {
		t.Error("without a limit")
	}
}

// TestBadSource checks that NewSource returns an error for an array with wrong offsets, or with values that cannot be
// converted.
func TestBadSource(t *testing.T) {
	for _, offsets := range [][]int32{{0, 5, 3}, {0, 1, 9}, {-1, 0, 2}} {
		data := array.NewData(arrow.BinaryTypes.Binary, 2, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes([]byte("text"))}, nil, 0, 0)
		if _, err := sourceOf(data, value.BytesType); err == nil {
			t.Errorf("offsets %v are taken", offsets)
		}
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues([]int64{1, 1 << 40}, nil)
	var wrong *ConversionError
	if _, err := NewSource(b.NewArray(), value.DateType); !errors.As(err, &wrong) || wrong.Row != 0 {
		t.Errorf("numbers as dates: %v", err)
	}
}

// sourceOf calls NewSource and turns a panic of Arrow's library into an error, as the server does.
func sourceOf(data arrow.ArrayData, t *value.Type) (s value.Source, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("malformed")
		}
	}()
	return NewSource(array.MakeFromData(data), t)
}
