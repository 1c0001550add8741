// Package columnar is columns of values as Apache Arrow's arrays, in both directions. Which type of Arrow a type of GoogleSQL is, package arrowtype says.
//
// An Arrow type that cannot hold a value is an error, never another value: nanoseconds reach from 1677-09-21 to 2262-04-11, microseconds everywhere
// without what is below them, and the time part of an INTERVAL to 292 years. Strings are not dictionary-encoded.
//
// It promises that values are appended without memory of their own, and that a batch's memory is used again for the next one.
// It leaves out files and streams of record batches, which Arrow's library reads and writes.
//
// Imports of this module: arrowtype, value.
package columnar

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/value"
)

// uuidBytes is the size of a UUID.
const uuidBytes = 16

// A Column is the name and type of a column.
type Column struct {
	Name     string
	Type     *value.Type
	Required bool // no value is NULL
}

// Options choose where there is more than one Arrow type for a type.
type Options struct {
	Microseconds bool // TIMESTAMP is timestamp[us, UTC]
	// Lossless has a column hold every value: when one comes that its Arrow type cannot hold, the array becomes one of Arrow's Binary, of the values as
	// they are stored in rows (value.AppendRow). StoredValueAt reads both.
	Lossless bool
}

// Schema is Arrow's schema of columns.
func Schema(columns []Column, o Options) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = fieldOf(c, o)
	}
	return arrow.NewSchema(fields, nil)
}

// fieldOf is Arrow's field of a column.
func fieldOf(c Column, o Options) arrow.Field {
	timestamps := arrowtype.Nanoseconds
	if o.Microseconds {
		timestamps = arrowtype.Microseconds
	}
	f, err := arrowtype.StorageField(c.Name, c.Type.Proto(), "", !c.Required, timestamps)
	if err != nil {
		panic(fmt.Sprintf("a type of package value is none of package arrowtype: %v", err))
	}
	return f
}

// TypeOf is the GoogleSQL type that takes all values of an Arrow field. Its error names the type if there is none.
func TypeOf(f arrow.Field) (*value.Type, error) {
	_, t, err := arrowtype.SpannerType(f)
	if err != nil {
		return nil, err
	}
	return value.TypeFromProto(t)
}
