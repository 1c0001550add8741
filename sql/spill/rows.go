package spill

import (
	"encoding/binary"
	"errors"

	"github.com/crowfoot-db/crowfoot/value"
)

// Writer writes a list of rows.
type Writer struct {
	rows Rows
	buf  []byte // the bytes for the next block, after blockHead bytes for its checksum
}

// NewWriter returns a Writer for a new list of rows with columns of these types.
func (f *File) NewWriter(types []*value.Type) *Writer {
	return &Writer{rows: Rows{file: f, types: types}, buf: make([]byte, blockHead, 1<<10)}
}

// Append adds a row. The values of the row are the concatenation of the slices row and more.
func (w *Writer) Append(row []value.Value, more ...value.Value) error {
	start := len(w.buf)
	w.buf = append(w.buf, 0)
	for i, v := range row {
		w.buf = value.AppendElement(w.buf, v, w.rows.types[i])
	}
	for i, v := range more {
		w.buf = value.AppendElement(w.buf, v, w.rows.types[len(row)+i])
	}
	w.setLength(start)
	w.rows.n++
	w.rows.file.written.Rows++
	for len(w.buf) >= BlockSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

// setLength writes the length of the row that begins at start. Append has left one byte for the length, which is
// enough for most rows. If the length needs more bytes, setLength moves the row.
func (w *Writer) setLength(start int) {
	size := len(w.buf) - start - 1
	if size < 0x80 {
		w.buf[start] = byte(size)
		return
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	w.buf = append(w.buf, length[:n-1]...)
	copy(w.buf[start+n:], w.buf[start+1:start+1+size])
	copy(w.buf[start:], length[:n])
}

// flush writes the first BlockSize bytes of buf, or all if there are fewer, as a block of the file.
func (w *Writer) flush() error {
	n := min(len(w.buf), BlockSize)
	block, err := w.rows.file.write(w.buf[:n])
	if err != nil {
		return err
	}
	w.rows.blocks = append(w.rows.blocks, block)
	w.rows.size += int64(n - blockHead)
	w.buf = w.buf[:blockHead+copy(w.buf[blockHead:], w.buf[n:])]
	return nil
}

// Finish writes the rows that are still in memory, and returns the list.
func (w *Writer) Finish() (*Rows, error) {
	if len(w.buf) > blockHead {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	w.buf = nil
	return &w.rows, nil
}

// Drop frees the blocks of an unfinished list that is not needed any more. The Writer must not be used afterwards.
func (w *Writer) Drop() { w.rows.Free() }

// Rows is a list of rows in a File. Several Readers may read it, one after the other or interleaved.
type Rows struct {
	file   *File
	types  []*value.Type
	n      int64
	blocks []int64
	size   int64 // size of the rows in bytes, not counting the checksums of blocks
}

// freed stands in Rows.blocks in place of the number of a block that a Reader has freed after it read the block for the
// last time.
const freed = -1

// Len returns the number of rows.
func (l *Rows) Len() int64 { return l.n }

// Free frees the blocks of the list. The list must not be used afterwards.
func (l *Rows) Free() {
	for _, b := range l.blocks {
		if b != freed {
			l.file.free = append(l.file.free, b)
		}
	}
	l.blocks, l.n, l.size = nil, 0, 0
}

// Read returns a Reader at the beginning of the list.
func (l *Rows) Read() *Reader { return &Reader{rows: l, left: l.n} }

// ReadLast returns a Reader that reads the list for the last time. The Reader frees each block after it has read it.
func (l *Rows) ReadLast() *Reader { return &Reader{rows: l, left: l.n, last: true} }

// Reader reads a list of rows.
type Reader struct {
	rows  *Rows
	left  int64 // the number of rows not yet read
	last  bool
	block int // index in rows.blocks of the next block to read
	buf   []byte
	at    int // number of bytes of buf that have been decoded
}

var errMalformed = errors.New("a row is malformed")

// Next decodes the next row into row, which must have an element for each column. It returns false at the end of the
// list.
func (r *Reader) Next(row []value.Value) (bool, error) {
	if r.left == 0 {
		return false, nil
	}
	size, n := binary.Uvarint(r.buf[r.at:])
	for n <= 0 || uint64(len(r.buf)-r.at-n) < size {
		if err := r.fill(); err != nil {
			return false, err
		}
		size, n = binary.Uvarint(r.buf[r.at:])
	}
	b := r.buf[r.at+n : r.at+n+int(size)]
	r.at += n + int(size)
	for i, t := range r.rows.types {
		var ok bool
		if row[i], b, ok = value.DecodeElement(b, t); !ok {
			return false, r.rows.file.dir.failed("read", errMalformed)
		}
	}
	r.left--
	return true, nil
}

// fill reads the next block and appends its rows to those bytes of buf that are not yet decoded.
func (r *Reader) fill() error {
	if r.block == len(r.rows.blocks) {
		return r.rows.file.dir.failed("read", errMalformed)
	}
	r.buf = append(r.buf[:0], r.buf[r.at:]...)
	r.at = 0
	n := int64(blockRoom)
	if r.block == len(r.rows.blocks)-1 {
		n = r.rows.size - int64(r.block)*blockRoom
	}
	block := r.rows.blocks[r.block]
	var err error
	if r.buf, err = r.rows.file.read(r.buf, block, int(n)); err != nil {
		return err
	}
	if r.last {
		r.rows.file.free = append(r.rows.file.free, block)
		r.rows.blocks[r.block] = freed
	}
	r.block++
	return nil
}

// Close ends the reading. If ReadLast has made the Reader, Close frees the blocks that were not read. If Read has made
// it, Close does nothing.
func (r *Reader) Close() {
	if r.last {
		r.rows.Free()
		r.left = 0
	}
}
