package columnar

import (
	"bytes"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // registers the extension types, as clients do
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/value"
)

// everyType returns every type of package value: alone, as the element of an ARRAY and as a field of a STRUCT.
func everyType() []*value.Type {
	var list, fields []*value.Type
	for k := range value.Kind(255) {
		if t := value.ScalarType(k); t != nil {
			fields = append(fields, t)
			list = append(list, t, value.ArrayOf(t))
		}
	}
	all := make([]value.Field, len(fields))
	for i, t := range fields {
		all[i] = value.Field{Name: t.String(), Type: t}
	}
	list = append(list, value.StructOf(), value.StructOf(all...))
	return append(list, value.ArrayOf(value.StructOf(value.Field{Type: value.ArrayOf(value.StructOf(all...))})))
}

// TestClientsTypes sends the schema of a column of each type from a server to a client. It checks that the client gets
// the Arrow field that arrowtype.Field makes from the type. It also checks that TypeOf returns the type again, with and
// without Crowfoot's metadata.
func TestClientsTypes(t *testing.T) {
	for _, o := range []Options{{}, {Microseconds: true}} {
		timestamps := arrowtype.Nanoseconds
		if o.Microseconds {
			timestamps = arrowtype.Microseconds
		}
		for _, kind := range everyType() {
			for _, required := range []bool{false, true} {
				want, err := arrowtype.Field("c", kind.Proto(), "", !required, timestamps)
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				schema := Schema([]Column{{Name: "c", Type: kind, Required: required}}, o)
				sent := schema.Field(0)
				if got := overWire(t, schema).Field(0); !got.Equal(want) {
					t.Errorf("%s: the server sends %v, clients have %v", kind, got, want)
				}
				plain := sent
				plain.Metadata = withoutKey(sent.Metadata, arrowtype.TypeKey)
				for _, f := range []arrow.Field{sent, want, plain} {
					if back, err := TypeOf(f); err != nil || !back.Equal(kind) {
						t.Errorf("%v is taken for %v, %v", f, back, err)
					}
				}
			}
		}
	}
}

// overWire returns a schema as a client decodes it.
func overWire(t *testing.T, schema *arrow.Schema) *arrow.Schema {
	t.Helper()
	var buf bytes.Buffer
	if err := ipc.NewWriter(&buf, ipc.WithSchema(schema)).Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	return r.Schema()
}

func withoutKey(m arrow.Metadata, key string) arrow.Metadata {
	entries := m.ToMap()
	delete(entries, key)
	return arrow.MetadataFrom(entries)
}

// TestTimestampEnds checks that servers and clients have the same least and greatest timestamp in nanoseconds.
func TestTimestampEnds(t *testing.T) {
	b := NewBatch([]Column{{Name: "c", Type: value.TimestampType}}, Options{})
	const seconds = math.MaxInt64 / 1_000_000_000
	for _, inside := range []value.Value{value.OfTimestamp(seconds, 854775807), value.OfTimestamp(-seconds-1, 145224192)} {
		if err := b.Columns[0].AppendValue(inside); err != nil {
			t.Error(err)
		}
	}
	for _, outside := range []value.Value{value.OfTimestamp(seconds, 854775808), value.OfTimestamp(-seconds-1, 145224191)} {
		if err := b.Columns[0].AppendValue(outside); err == nil {
			t.Errorf("%v has nanoseconds", outside)
		}
	}
	record := b.Record(2)
	defer record.Release()
	column := record.Column(0).(*array.Timestamp)
	if column.Value(0) != math.MaxInt64 || column.Value(1) != math.MinInt64 {
		t.Errorf("the ends are %v", column)
	}
}
