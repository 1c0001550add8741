// Package columnar converts columns of values to Apache Arrow's arrays and back. Package arrowtype decides which Arrow
// type a GoogleSQL type becomes.
//
// A value that does not fit its Arrow type gives an error, unless Options.Lossless is set. Arrow's timestamps in
// nanoseconds hold only times from 1677-09-21 to 2262-04-11. Its timestamps in microseconds hold all times, but cut off
// digits below microseconds. The time part of an INTERVAL can be at most 292 years long. Strings are not
// dictionary-encoded.
//
// The package promises that appending a value makes no allocation of its own, and that a Batch reuses its memory for
// the next record batch. It does not read or write files and streams of record batches; Arrow's library does.
//
// Imports of this module: arrowtype, value.
package columnar

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/value"
)

// uuidBytes is the size of a UUID in bytes.
const uuidBytes = 16

// A Column is the name and type of a column.
type Column struct {
	Name     string
	Type     *value.Type
	Required bool // no value is NULL
}

// Options choose one of several Arrow types for a GoogleSQL type.
type Options struct {
	Microseconds bool // the Arrow type of TIMESTAMP is timestamp[us, UTC]
	// Lossless makes a column hold every value. When a value does not fit the Arrow type, the whole array becomes an
	// Arrow Binary array of values in stored form (value.AppendRow). StoredValueAt reads arrays of both forms.
	Lossless bool
}

// Schema returns the Arrow schema of columns.
func Schema(columns []Column, o Options) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = fieldOf(c, o)
	}
	return arrow.NewSchema(fields, nil)
}

// fieldOf returns the Arrow field of a column.
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

// TypeOf returns the GoogleSQL type that can hold all values of an Arrow field. If there is none, the error names the
// Arrow type.
func TypeOf(f arrow.Field) (*value.Type, error) {
	_, t, err := arrowtype.SpannerType(f)
	if err != nil {
		return nil, err
	}
	return value.TypeFromProto(t)
}
