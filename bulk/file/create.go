package file

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// Writer writes batches of one schema to a file.
type Writer interface {
	// Write appends the rows of a batch. It does not keep a reference to the batch.
	Write(batch arrow.RecordBatch) error
	// Close writes the remaining data. The file is complete only if Close returns nil.
	Close() error
}

// NewWriter begins a file in a format.
func NewWriter(to io.Writer, format Format, schema *arrow.Schema) (Writer, error) {
	switch format {
	case CSV, TBL:
		return newTextWriter(to, syntaxOf(Options{Format: format}), schema)
	case JSONLines:
		return newJSONWriter(to, schema)
	case Parquet:
		return newParquetWriter(to, schema)
	case Arrow:
		return newArrowWriter(to, schema)
	case Avro:
		return newAvroWriter(to, schema, AvroRecord{})
	}
	return nil, fmt.Errorf("the format %s is not known", format)
}
