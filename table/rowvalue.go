package table

import (
	"encoding/binary"
	"fmt"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The value of a row holds the columns that are not NULL and not in the key, by ascending ColumnID:
//
//	01, then for each column: ColumnID (uvarint), length of its payload (uvarint), payload
//
// The value of an index entry holds the STORING columns in the same form. It also holds a FLOAT64 or FLOAT32 of the
// entry's key if the encoding in the key loses a part of the value (see value.AsKey), so that a read through an index
// shows -0 where the row holds -0. A column of the primary key needs no copy, because -0 is stored as 0 there. A
// reader skips unknown IDs, which belong to dropped columns. A column that is missing is NULL; perhaps it was added
// after the row was written.
const rowVersion = 1

// field is the position of a column's payload in a row's value: the bytes [start, end). The zero field, absent, means
// NULL.
type field struct{ start, end uint32 }

var absent = field{}

func (f field) isNull() bool       { return f.end == 0 }
func (f field) of(b []byte) []byte { return b[f.start:f.end] }

// findFields searches val, the value of a row, for the columns with the given IDs and stores their positions in fields.
// ids must be ascending.
func findFields(val []byte, ids []schema.ColumnID, fields []field) error {
	if len(val) == 0 || val[0] != rowVersion {
		return errRow(val)
	}
	pos, next := 1, 0
	fields = fields[:len(ids)]
	for pos < len(val) && next < len(ids) {
		id, size := uint64(val[pos]), uint64(0)
		if pos+1 < len(val) && val[pos]|val[pos+1] < 0x80 {
			size = uint64(val[pos+1])
			pos += 2
		} else {
			var n, m int
			if id, n = binary.Uvarint(val[pos:]); n <= 0 {
				return errRow(val)
			}
			if size, m = binary.Uvarint(val[pos+n:]); m <= 0 {
				return errRow(val)
			}
			pos += n + m
		}
		if size > uint64(len(val)-pos) {
			return errRow(val)
		}
		if uint64(ids[next]) < id {
			for ; next < len(ids) && uint64(ids[next]) < id; next++ {
				fields[next] = absent
			}
			if next == len(ids) {
				break
			}
		}
		if uint64(ids[next]) == id {
			fields[next] = field{uint32(pos), uint32(pos) + uint32(size)}
			next++
		}
		pos += int(size)
	}
	for ; next < len(ids); next++ {
		fields[next] = absent
	}
	return nil
}

func errRow(val []byte) error {
	return fmt.Errorf("malformed stored row: %x", val[:min(len(val), 32)])
}

// appendRowValue appends the stored value of a row or index entry to dst. The value holds the given columns, except
// those that are NULL in row. columns must be sorted by ID. appendRowValue also appends the positions of pending commit
// timestamps to pending.
func appendRowValue(dst []byte, columns []*schema.Column, row []value.Value, pending []Pending) ([]byte, []Pending) {
	start := len(dst)
	dst = append(dst, rowVersion)
	for _, c := range columns {
		v := row[c.Ordinal]
		if v.IsNull() {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(c.ID))
		dst = binary.AppendUvarint(dst, uint64(value.RowSize(v, c.Type)))
		if v.IsPending() {
			pending = append(pending, Pending{Offset: len(dst) - start})
		}
		dst = value.AppendRow(dst, v, c.Type)
	}
	return dst, pending
}
