package file

import (
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/crowfoot-db/crowfoot/arrowmessage"
)

// arrowFormat reads Arrow IPC files. The parts of such a file that can be read separately are its record batches.
var arrowFormat = columnarFormat{arrowParts, readArrow}

func arrowParts(f *os.File) (schema *arrow.Schema, rows []int64, err error) {
	var r *arrowmessage.File
	if err := guard("its footer", func() (err error) { r, err = openArrow(f); return err }); err != nil {
		return nil, nil, err
	}
	defer r.Close()
	rows = make([]int64, r.Batches())
	for i := range rows { // the footer does not say how many rows a batch has
		err := guard(fmt.Sprintf("its batch %d of %d", i+1, len(rows)), func() (err error) {
			rows[i], err = r.Rows(i)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return r.Schema(), rows, nil
}

func openArrow(f *os.File) (*arrowmessage.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return arrowmessage.OpenFile(f, info.Size(), atMost(largestBuffer))
}

func readArrow(f *os.File, s *columnarSegment) (func() (arrow.RecordBatch, error), error) {
	r, err := openArrow(f)
	at := s.from
	return func() (arrow.RecordBatch, error) {
		if at == s.end {
			r.Close()
			return nil, io.EOF
		}
		at++
		return r.Batch(at - 1)
	}, err
}

// arrowWriter writes a compressed Arrow IPC file.
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
