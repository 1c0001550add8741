package transfer

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// CreateTable returns the statement that creates a table for the rows of a schema. The parameter key lists the columns
// of the table's primary key.
func CreateTable(name string, schema *arrow.Schema, key []string) (string, error) {
	var columns, keys []string
	for _, f := range schema.Fields() {
		ddl, t, err := arrowtype.SpannerType(f)
		if err != nil {
			return "", err
		}
		if isOnlyInQueries(t) {
			return "", fmt.Errorf("column %s: a table has no columns of %s", f.Name, ddl)
		}
		ddl = protoType.ReplaceAllString(ddl, "$1")
		if !f.Nullable {
			ddl += " NOT NULL"
		}
		columns = append(columns, "\n  "+quoteName(f.Name)+" "+ddl+",")
	}
	for _, k := range key {
		if len(schema.FieldIndices(k)) == 0 {
			return "", fmt.Errorf("the files have no column %s, which is to be in the primary key", k)
		}
		keys = append(keys, quoteName(k))
	}
	return "CREATE TABLE " + quoteName(name) + " (" + strings.Join(columns, "") + "\n) PRIMARY KEY (" + strings.Join(keys, ", ") + ")", nil
}

// isOnlyInQueries reports whether a type can occur in results of queries, but not in tables.
func isOnlyInQueries(t *spannerpb.Type) bool {
	switch t.GetCode() {
	case spannerpb.TypeCode_STRUCT, spannerpb.TypeCode_INTERVAL:
		return true
	case spannerpb.TypeCode_ARRAY:
		return isOnlyInQueries(t.GetArrayElementType())
	}
	return false
}
