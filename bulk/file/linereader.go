package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// lineReader reads the rows of a range of a file.
type lineReader struct {
	file      *os.File
	at, end   int64  // the range of the file that was not read into the buffer yet
	buffer    []byte // bytes that were read from the file
	begin     int    // the index in buffer at which the row that was read last starts
	following int    // the index in buffer at which the next row starts
	row       []byte // the row that was read last, without its line end
	lines     *lineCounter
}

const (
	lineBuffer = 1 << 20
	// maxRow is the largest number of bytes of a row. A longer row could not be written, because Spanner accepts
	// commits of up to 100 MB
	// (https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data).
	maxRow = 100 << 20
)

func newLineReader(name string, from, end int64) (*lineReader, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &lineReader{file: file, at: from, end: end, buffer: make([]byte, 0, lineBuffer), lines: &lineCounter{name: name}}, nil
}

func (l *lineReader) close() error { return l.file.Close() }

// from returns the offset in the file at which the row that was read last begins.
func (l *lineReader) from() int64 { return l.at - int64(len(l.buffer)-l.begin) }

// behind returns the offset in the file at which the row that was read last ends.
func (l *lineReader) behind() int64 { return l.at - int64(len(l.buffer)-l.following) }

// next returns the next line without its line end, or io.EOF after the last line.
func (l *lineReader) next() ([]byte, error) {
	l.begin = l.following
	return l.to(l.begin)
}

// extend adds lines to the row that was read last until its quotes are closed. It returns errOpenQuote if they are
// still open after the file's last line.
func (l *lineReader) extend(delimiter byte) ([]byte, error) {
	q, passed := newQuotes(delimiter), 0
	for {
		line := l.buffer[l.begin+passed : l.following]
		q.pass(line)
		passed += len(line)
		if !q.open() {
			return l.row, nil
		}
		if _, err := l.to(l.following); err == io.EOF {
			return nil, errOpenQuote
		} else if err != nil {
			return nil, err
		}
	}
}

// to returns the current row without its line end. The search for the line end starts at an index in the buffer, the
// parameter from. If there is no line end, the row ends at the end of the range. If the range has no more bytes, the
// error is io.EOF.
func (l *lineReader) to(from int) ([]byte, error) {
	for {
		if n := bytes.IndexByte(l.buffer[from:], '\n'); n >= 0 {
			end := from + n
			l.following = end + 1
			if end > l.begin && l.buffer[end-1] == '\r' {
				end--
			}
			l.row = l.buffer[l.begin:end]
			return l.row, nil
		}
		if l.at == l.end {
			if from == len(l.buffer) {
				return nil, io.EOF
			}
			l.following = len(l.buffer)
			l.row = l.buffer[l.begin:]
			return l.row, nil
		}
		scanned := len(l.buffer) - l.begin
		if err := l.read(); err != nil {
			return nil, err
		}
		from = scanned // read() has moved the row to the start of the buffer
	}
}

// read moves the current row to the start of the buffer, and reads more bytes of the file behind it.
func (l *lineReader) read() error {
	kept := copy(l.buffer, l.buffer[l.begin:])
	l.begin, l.following = 0, l.following-l.begin
	l.buffer = l.buffer[:kept]
	if kept > cap(l.buffer)/2 {
		if kept > maxRow {
			return fmt.Errorf("%v: the row is longer than %d bytes", l.lines.place(l.from()), maxRow)
		}
		l.buffer = append(make([]byte, 0, 2*cap(l.buffer)), l.buffer...)
	}
	room := l.buffer[kept:cap(l.buffer)]
	n, err := l.file.ReadAt(room[:min(int64(len(room)), l.end-l.at)], l.at)
	l.buffer = l.buffer[:kept+n]
	l.at += int64(n)
	switch {
	case err == io.EOF && n == 0:
		return fmt.Errorf("%s has become shorter while it is read", l.lines.name)
	case err != nil && err != io.EOF:
		return err // the error names the file
	}
	return nil
}

// lineCounter converts offsets in a file to line numbers.
type lineCounter struct {
	name     string
	mu       sync.Mutex
	counted  int64 // the offset up to which lines were counted
	newlines int64 // the number of line ends before that offset
}

// place returns the number of the line that begins at an offset. It counts the line ends before the offset.
func (l *lineCounter) place(offset int64) bulk.Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < l.counted {
		l.counted, l.newlines = 0, 0
	}
	file, err := os.Open(l.name)
	if err != nil {
		return bulk.Place{File: l.name}
	}
	defer file.Close()
	buffer := make([]byte, min(cutBuffer, max(offset-l.counted, 0)))
	for l.counted < offset {
		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), offset-l.counted)], l.counted)
		l.newlines += int64(bytes.Count(buffer[:n], []byte{'\n'}))
		l.counted += int64(n)
		if err != nil && n == 0 {
			break // the file has become shorter, so this line number is the best one available
		}
	}
	return bulk.Place{File: l.name, Line: l.newlines + 1}
}
