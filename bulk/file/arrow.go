package file

import (
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// openArrow opens Arrow's IPC files. Their parts are batches.
func openArrow(names []string) (bulk.Source, error) {
	c := &columnar{}
	for _, name := range names {
		err := guard(name, func() error {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := guard("its footer", func() error { return checkArrowFile(f) }); err != nil {
				return err
			}
			r, err := ipc.NewFileReader(f, ipc.WithAllocator(newAllocator()))
			if err != nil {
				return err
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
					return err
				}
			}
			return c.add(name, r.Schema(), rows, openArrowSegment)
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func openArrowSegment(s *columnarSegment) (*columnarReader, error) {
	f, err := os.Open(s.name)
	if err != nil {
		return nil, err
	}
	r, err := ipc.NewFileReader(f, ipc.WithAllocator(newAllocator()))
	if err != nil {
		f.Close()
		return nil, err
	}
	at := s.from
	next := func() (arrow.RecordBatch, error) {
		if at == s.end {
			return nil, io.EOF
		}
		at++
		return r.RecordBatchAt(at - 1)
	}
	return &columnarReader{segment: s, file: f, next: next}, nil
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
