// Package resulttest decodes the messages of a result as clients do, for tests.
//
// Imports of this module: nothing.
package resulttest

import (
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Assemble joins the messages of a stream, or of its resumed parts, and returns the values, as clients do.
func Assemble(list []*spannerpb.PartialResultSet) []*structpb.Value {
	var values []*structpb.Value
	chunked := false
	for _, p := range list {
		next := p.Values
		if chunked && len(next) > 0 {
			values[len(values)-1] = Merge(values[len(values)-1], next[0])
			next = next[1:]
		}
		values = append(values, next...)
		chunked = p.ChunkedValue
	}
	return values
}

// Merge joins two pieces of a value as clients do (PartialResultSet.chunked_value).
func Merge(a, b *structpb.Value) *structpb.Value {
	switch x := a.GetKind().(type) {
	case *structpb.Value_StringValue:
		return structpb.NewStringValue(x.StringValue + b.GetStringValue())
	case *structpb.Value_ListValue:
		left, right := x.ListValue.GetValues(), b.GetListValue().GetValues()
		if len(left) > 0 && len(right) > 0 && mergeable(left[len(left)-1]) {
			joined := Merge(left[len(left)-1], right[0])
			left, right = append(left[:len(left)-1:len(left)-1], joined), right[1:]
		}
		return structpb.NewListValue(&structpb.ListValue{Values: append(left, right...)})
	}
	panic(fmt.Sprintf("chunk of %T", a.GetKind()))
}

func mergeable(v *structpb.Value) bool {
	switch v.GetKind().(type) {
	case *structpb.Value_StringValue, *structpb.Value_ListValue:
		return true
	}
	return false
}
