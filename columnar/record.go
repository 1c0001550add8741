package columnar

import (
	"encoding/binary"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// The record of a chunk has this form:
//
//	version (1 byte), flags, timestamp, rows, start, end, number of columns,
//	for each column: number, definition, flags, size of the Arrow buffers, size of the blob
//
// Sizes are in bytes. Numbers are uvarints. start, end and definition are each preceded by their length.
const recordVersion = 1

// Flags of a record.
const (
	isDead   = 1 << iota // the chunk was replaced
	startCut             // the blobs have rows before start, because a newer chunk covers that range
)

// isStored is a flag of a column: the array holds values in the form in which rows store them, because the column's
// Arrow type cannot hold all of the values.
const isStored = 1

func appendRecord(dst []byte, c *chunk, dead bool) []byte {
	flags := uint64(0)
	for flag, is := range map[uint64]bool{isDead: dead, startCut: c.startCut} {
		if is {
			flags |= flag
		}
	}
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(c.at))
	dst = binary.AppendUvarint(dst, uint64(c.rows))
	dst = appendBytes(dst, c.start)
	dst = appendBytes(dst, c.end)
	dst = binary.AppendUvarint(dst, uint64(len(c.columns)))
	for _, col := range c.columns {
		dst = binary.AppendUvarint(dst, uint64(col.ID))
		dst = appendBytes(dst, []byte(col.definition))
		flags := uint64(0)
		if col.stored {
			flags = isStored
		}
		dst = binary.AppendUvarint(dst, flags)
		dst = binary.AppendUvarint(dst, uint64(col.Size))
		dst = binary.AppendUvarint(dst, uint64(col.Bytes))
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// fields reads the fields of a record or of a blob's head one after the other. After a missing or malformed field, bad
// is set and all further fields are zero.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) uint() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

func (f *fields) bytes() []byte {
	n := f.uint()
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	b := append([]byte(nil), f.rest[:n]...)
	f.rest = f.rest[n:]
	return b
}

// parseRecord parses a chunk's record. dead says that the record is marked as dead. ok is false if the record is
// malformed.
func parseRecord(val []byte) (c *chunk, dead, ok bool) {
	if len(val) == 0 || val[0] != recordVersion {
		return nil, false, false
	}
	f := fields{rest: val[1:]}
	flags := f.uint()
	c = &chunk{blobs: new(blobs), startCut: flags&startCut != 0}
	c.at, c.rows = mvcc.Timestamp(f.uint()), int64(f.uint())
	c.start, c.end = f.bytes(), f.bytes()
	for n := f.uint(); n > 0 && !f.bad; n-- {
		col := column{ID: schema.ColumnID(f.uint()), definition: string(f.bytes())}
		col.stored = f.uint()&isStored != 0
		col.Size, col.Bytes = int64(f.uint()), int64(f.uint())
		c.columns = append(c.columns, col)
	}
	return c, flags&isDead != 0, !f.bad && len(f.rest) == 0
}
