package retrieval

import (
	"fmt"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestRowDecoder checks that the decoder collects the right values in its columns, even if messages end between the
// values of a row or within a text.
func TestRowDecoder(t *testing.T) {
	types := []spannerpb.TypeCode{spannerpb.TypeCode_INT64, spannerpb.TypeCode_STRING, spannerpb.TypeCode_FLOAT64, spannerpb.TypeCode_BOOL}
	set := &spannerpb.PartialResultSet{Metadata: &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}}}
	for _, c := range types {
		set.Metadata.RowType.Fields = append(set.Metadata.RowType.Fields, &spannerpb.StructType_Field{Type: &spannerpb.Type{Code: c}})
	}
	text := structpb.NewStringValue
	d := new(rowDecoder)
	send := func(chunked bool, values ...*structpb.Value) error {
		set.Values, set.ChunkedValue = values, chunked
		b, err := proto.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		set.Metadata = nil
		return d.decode(b)
	}
	for _, err := range []error{
		send(false, text("-12"), text("a")),
		send(false, structpb.NewNumberValue(1.5)),
		send(true, structpb.NewBoolValue(true), text("9223372036854775807"), text("be")),
		send(true, text("")),
		send(false, text("gun"), text("NaN"), structpb.NewNullValue()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.end(); err != nil || d.rows != 2 {
		t.Errorf("%d rows, %v", d.rows, err)
	}
	got := fmt.Sprintln(d.columns[0].ints, string(d.columns[1].text), d.columns[1].ends, d.columns[2].floats, d.columns[3].nulls)
	if want := "[-12 9223372036854775807] abegun [1 6] [1.5 NaN] [false true]\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if send(false, text("x")) == nil {
		t.Error("x is taken for an INT64")
	}
	if send(false, text("1")) != nil || d.end() == nil {
		t.Error("a stream may end within a row")
	}
}
