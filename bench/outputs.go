package bench

import (
	"errors"
	"io"
	"os"
)

// outputs holds the files that a run writes. The files are created when the run begins, so that a wrong path is
// reported before minutes of measuring.
type outputs struct {
	list []output
}

type output struct {
	file  *os.File
	write func(document, io.Writer) error
}

// document is a report that can be written as one HTML page and as JSON.
type document interface {
	WritePage(io.Writer) error
	WriteJSON(io.Writer) error
}

func (s Outputs) Create() (*outputs, error) {
	o := new(outputs)
	for _, want := range []struct {
		name  string
		write func(document, io.Writer) error
	}{{s.Report, document.WritePage}, {s.JSON, document.WriteJSON}} {
		if want.name == "" {
			continue
		}
		f, err := os.Create(want.name)
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
		o.list = append(o.list, output{f, want.write})
	}
	return o, nil
}

func (o *outputs) Write(d document) error {
	var errs []error
	for _, out := range o.list {
		errs = append(errs, out.write(d, out.file))
	}
	return errors.Join(errs...)
}

func (o *outputs) Close() error {
	var errs []error
	for _, out := range o.list {
		errs = append(errs, out.file.Close())
	}
	return errors.Join(errs...)
}
