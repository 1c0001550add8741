package file

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	parquetfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// parquetFormat reads Parquet files. The parts of such a file that can be read separately are its row groups.
var parquetFormat = columnarFormat{parquetParts, readParquet}

func parquetParts(f *os.File) (*arrow.Schema, []int64, error) {
	r, err := newParquetReader(f)
	if err != nil {
		return nil, nil, err
	}
	var rows []int64
	for i := range r.ParquetReader().NumRowGroups() {
		n := r.ParquetReader().MetaData().RowGroup(i).NumRows()
		if n < 0 {
			return nil, nil, fmt.Errorf("row group %d has %d rows", i+1, n)
		}
		rows = append(rows, n)
	}
	schema, err := r.Schema()
	return schema, rows, err
}

func newParquetReader(f *os.File) (*pqarrow.FileReader, error) {
	properties := parquet.NewReaderProperties(newAllocator())
	properties.BufferedStreamEnabled = true // read one page at a time, not whole row groups
	var r *parquetfile.Reader
	err := guard("its footer", func() error {
		info, err := f.Stat()
		if err == nil {
			err = checkParquetFooter(f, info.Size())
		}
		if err != nil {
			return err
		}
		r, err = parquetfile.NewParquetReader(f, parquetfile.WithReadProps(properties))
		return err
	})
	if err != nil {
		return nil, err
	}
	var reader *pqarrow.FileReader
	err = guard("Arrow's schema in its footer", func() error { return checkArrowSchema(r.MetaData()) })
	if err == nil {
		err = guard("the schema in its footer", func() (err error) {
			// One goroutine reads all columns, because a panic in another goroutine could not be recovered.
			reader, err = pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: bulk.BatchRows}, newAllocator())
			return err
		})
	}
	return reader, err
}

// longestBatch is approximately the maximum number of bytes in a batch of long rows.
const longestBatch = 32 << 20

func readParquet(f *os.File, s *columnarSegment) (func() (arrow.RecordBatch, error), error) {
	r, err := newParquetReader(f)
	if err != nil {
		return nil, err
	}
	var groups []int
	var rows, bytes int64
	for i := s.from; i < s.end; i++ {
		err := guard(fmt.Sprintf("row group %d", i+1), func() error { return checkRowGroup(f, r.ParquetReader(), i) })
		if err != nil {
			return nil, err
		}
		groups = append(groups, i)
		g := r.ParquetReader().MetaData().RowGroup(i)
		rows, bytes = rows+g.NumRows(), bytes+max(g.TotalByteSize(), 0)
	}
	if rows > 0 && bytes/rows > 0 {
		r.Props.BatchSize = max(min(bulk.BatchRows, longestBatch/(bytes/rows)), 1)
	}
	records, err := r.GetRecordReader(context.Background(), nil, groups)
	if err != nil {
		return nil, err
	}
	return func() (arrow.RecordBatch, error) {
		if !records.Next() {
			if err := records.Err(); err != nil && err != io.EOF {
				return nil, err
			}
			return nil, io.EOF
		}
		batch := records.RecordBatch()
		batch.Retain() // the reader releases its own reference when it reads the next batch
		return batch, nil
	}, nil
}

// rowsOfGroup is the number of rows that a row group of a written file has. It is the same as in DuckDB. It matters
// for memory, because a writer holds a whole row group.
const rowsOfGroup = 122_880

// parquetWriter writes a Parquet file.
type parquetWriter struct {
	to     *pqarrow.FileWriter
	schema *arrow.Schema
}

func newParquetWriter(to io.Writer, schema *arrow.Schema) (Writer, error) {
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		fields[i] = parquetField(f)
	}
	stored := arrow.NewSchema(fields, nil)
	properties := parquet.NewWriterProperties(parquet.WithVersion(parquet.V2_LATEST), parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithMaxRowGroupLength(rowsOfGroup), parquet.WithCreatedBy("crowfoot"))
	w, err := pqarrow.NewFileWriter(stored, unclosed{to}, properties, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, fmt.Errorf("begin a file of Parquet: %w", err)
	}
	return &parquetWriter{w, stored}, nil
}

// parquetField returns a field as it is stored in Parquet. JSON is stored as text, because Arrow's library writes
// Parquet's JSON type but cannot read it back. The metadata of the field says that the text is JSON.
func parquetField(f arrow.Field) arrow.Field {
	switch t := f.Type.(type) {
	case *extensions.JSONType:
		f.Type = t.StorageType()
	case *arrow.ListType:
		f.Type = arrow.ListOfField(parquetField(t.ElemField()))
	}
	return f
}

// storage converts a column to the type that parquetField returns.
func storage(column arrow.Array, t arrow.DataType) arrow.Array {
	switch c := column.(type) {
	case *extensions.JSONArray:
		return c.Storage()
	case *array.List:
		data := c.Data()
		elems := storage(c.ListValues(), t.(*arrow.ListType).Elem())
		return array.MakeFromData(array.NewData(t, data.Len(), data.Buffers(), []arrow.ArrayData{elems.Data()}, data.NullN(), data.Offset()))
	}
	return column
}

func (w *parquetWriter) Write(batch arrow.RecordBatch) error {
	columns := make([]arrow.Array, batch.NumCols())
	for i, c := range batch.Columns() {
		columns[i] = storage(c, w.schema.Field(i).Type)
	}
	return w.to.WriteBuffered(array.NewRecordBatch(w.schema, columns, batch.NumRows()))
}

func (w *parquetWriter) Close() error { return w.to.Close() }

// unclosed is a writer without a Close method, so that the library cannot close the file; the caller does.
type unclosed struct{ io.Writer }
