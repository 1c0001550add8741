package file

import (
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// arrowFormat reads Arrow's IPC files. Their parts are batches.
var arrowFormat = columnarFormat{arrowParts, readArrow}

func arrowParts(f *os.File) (*arrow.Schema, []int64, error) {
	if err := guard("its footer", func() error { return checkArrowFile(f) }); err != nil {
		return nil, nil, err
	}
	r, err := ipc.NewFileReader(f, ipc.WithAllocator(newAllocator()))
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	rows := make([]int64, r.NumRecords())
	for i := range rows { // the footer does not tell
		err := guard(fmt.Sprintf("its batch %d of %d", i+1, len(rows)), func() error {
			batch, err := r.RecordBatchAt(i)
			if err != nil {
				return err
			}
			rows[i] = batch.NumRows()
			batch.Release()
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return r.Schema(), rows, nil
}

func readArrow(f *os.File, s *columnarSegment) (func() (arrow.RecordBatch, error), error) {
	r, err := ipc.NewFileReader(f, ipc.WithAllocator(newAllocator()))
	at := s.from
	return func() (arrow.RecordBatch, error) {
		if at == s.end {
			return nil, io.EOF
		}
		at++
		return r.RecordBatchAt(at - 1)
	}, err
}

// arrowWriter writes Arrow's IPC file, compressed.
type arrowWriter struct{ to *ipc.FileWriter }

func newArrowWriter(to io.Writer, schema *arrow.Schema) (Writer, error) {
	w, err := ipc.NewFileWriter(to, ipc.WithSchema(schema), ipc.WithLZ4())
	if err != nil {
		return nil, err
	}
	return &arrowWriter{w}, nil
}

func (w *arrowWriter) Write(batch arrow.RecordBatch) error { return w.to.Write(batch) }

func (w *arrowWriter) Close() error { return w.to.Close() }
