package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// checkTable returns an error if a row was refused because the table has changed since the import began. The import
// must then end, because all rows would be refused.
func (c *committer) checkTable(ctx context.Context, refused error) error {
	if code := status.Code(refused); code != codes.NotFound && code != codes.FailedPrecondition {
		return nil
	}
	now, err := bulk.Describe(ctx, c.client, c.table.Name)
	if err != nil {
		return fmt.Errorf("table %s was there when the import began: %w", c.table.Name, err)
	}
	if change := c.table.Change(now); change != "" {
		return fmt.Errorf("table %s was altered during the import: %s", c.table.Name, change)
	}
	return nil
}

// withoutInserted leaves out the rows that the table already has with the same values: an earlier attempt, which got no
// answer, has inserted them. It keeps a row if the table has a row with the same key and other values, because another
// program has written that row.
func (c *committer) withoutInserted(ctx context.Context, r *rows) (*rows, error) {
	key := make([]int, len(c.table.Key))
	for i, name := range c.table.Key {
		key[i] = slices.IndexFunc(c.columns, func(column bulk.ColumnInfo) bool { return strings.EqualFold(column.Name, name) })
	}
	left := &rows{}
	if slices.Contains(key, -1) { // the server generates a part of the key, so the rows cannot be found in the table
		*left = *r
		left.mayBeIn = false
		return left, nil
	}
	var write spannerpb.Mutation_Write
	if err := proto.Unmarshal(r.encoded, &write); err != nil {
		return nil, err
	}
	there, err := c.read(ctx, write.Values, key)
	if err != nil {
		return nil, err
	}
	begin := 0
	for i, end := range r.ends {
		if !there[c.text(write.Values[i].Values)] {
			left.encoded = append(left.encoded, r.encoded[begin:end]...)
			left.ends, left.places = append(left.ends, len(left.encoded)), append(left.places, r.places[i])
		}
		begin = end
	}
	return left, nil
}

// read reads the rows of the table that have the same keys as the given rows. The keys of the result are the rows that
// it finds, each as one text.
func (c *committer) read(ctx context.Context, rows []*structpb.ListValue, key []int) (map[string]bool, error) {
	var keys []spanner.KeySet
	for _, row := range rows {
		var k spanner.Key
		for _, column := range key {
			k = append(k, keyPart(row.Values[column]))
		}
		keys = append(keys, k)
	}
	there := map[string]bool{}
	values := make([]*structpb.Value, len(c.columns))
	err := c.client.Single().Read(ctx, c.table.Name, spanner.KeySets(keys...), columnNames(c.columns)).Do(func(row *spanner.Row) error {
		for i := range values {
			values[i] = row.ColumnValue(i)
		}
		there[c.text(values)] = true
		return nil
	})
	return there, err
}

// keyPart converts a value to a Go type that the client accepts in a key. For each type that is a string on the wire,
// the client accepts a string.
func keyPart(v *structpb.Value) any {
	switch v := v.Kind.(type) {
	case *structpb.Value_StringValue:
		return v.StringValue
	case *structpb.Value_BoolValue:
		return v.BoolValue
	case *structpb.Value_NumberValue:
		return v.NumberValue
	}
	return spanner.NullString{}
}

// text returns a row as a single text. A row that the client sends and the same row as the server returns it have the
// same text.
func (c *committer) text(row []*structpb.Value) string {
	var to []byte
	for i, v := range row {
		to = appendValue(to, c.columns[i].Type, v)
	}
	return string(to)
}

// appendValue appends the text of a value. Strings are quoted, so that different rows never have equal texts.
func appendValue(to []byte, t *spannerpb.Type, v *structpb.Value) []byte {
	switch kind := v.Kind.(type) {
	case *structpb.Value_ListValue:
		to = append(to, '[')
		for _, elem := range kind.ListValue.Values {
			to = appendValue(to, t.ArrayElementType, elem)
		}
		return append(to, ']')
	case *structpb.Value_NumberValue:
		f := kind.NumberValue
		if t.Code == spannerpb.TypeCode_FLOAT32 { // a client may send more digits of a FLOAT32 than the server stores
			f = float64(float32(f))
		}
		return append(arrowtype.AppendFloat(to, f, 64), ',')
	case *structpb.Value_StringValue:
		return fmt.Appendf(to, "%q,", normalText(t.Code, kind.StringValue))
	}
	return fmt.Appendf(to, "%v,", v.AsInterface())
}

// normalText returns a text in the form in which the server writes it. This is needed because values of some types can
// be sent in several forms.
func normalText(code spannerpb.TypeCode, text string) string {
	switch code {
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		if n, err := arrowtype.ParseInt64([]byte(text)); err == nil {
			return fmt.Sprint(n)
		}
	case spannerpb.TypeCode_DATE:
		if days, err := arrowtype.ParseDate([]byte(text)); err == nil {
			return string(arrowtype.AppendDate(nil, days))
		}
	case spannerpb.TypeCode_UUID:
		if id, err := arrowtype.ParseUUID([]byte(text)); err == nil {
			return fmt.Sprintf("%x", id)
		}
	case spannerpb.TypeCode_JSON:
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			if normal, err := json.Marshal(v); err == nil {
				return string(normal)
			}
		}
	}
	return text
}

func columnNames(columns []bulk.ColumnInfo) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}
