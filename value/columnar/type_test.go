package columnar

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // which clients register
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/value"
)

// everyType is every type of package value, alone and nested.
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

// TestClientsTypes: what a server sends arrives as the column that a client makes of the same type, and tells its type with and without Crowfoot's metadata.
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

// overWire is a schema as a client reads it.
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
