package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Decoder appends stored rows to columns, as Rows.Fill does, for a caller that reads keys and values itself. Only
// one goroutine may use it.
type Decoder struct {
	row  located
	skip []byte
}

// NewDecoder makes a decoder for the rows of a projection.
func NewDecoder(p *Projection) *Decoder {
	d := new(Decoder)
	d.row.init(p)
	return d
}

// Find says whether a key in the projection's key range belongs to a row or entry of the projection. If it does, own
// is true, and the caller may call Append. If the key belongs to another table or index, skip is a bound after key: no
// key of the projection lies between key and this bound.
func (d *Decoder) Find(key []byte) (own bool, skip []byte, err error) {
	switch at := d.row.p.walk(key, d.row.offsets); at.where {
	case ownKey:
		d.row.key = key
		return true, nil, nil
	case badKey:
		return false, nil, fmt.Errorf("malformed key in %s: %x", d.row.p.Name(), key)
	default:
		d.skip = d.row.p.appendSkip(d.skip[:0], key, at)
		return false, d.skip, nil
	}
}

// Append appends one row to columns. The key of the row is the one that was last passed to Find; val is the value of
// the row. columns has one entry for each column of the projection.
func (d *Decoder) Append(columns []value.Column, val []byte) error {
	if err := d.row.locate(d.row.key, val); err != nil {
		return err
	}
	return d.row.appendTo(columns)
}
