package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Decoder appends rows as they are stored to columns, like Rows.Fill, for a reader that finds the rows itself. It serves one goroutine.
type Decoder struct {
	row  located
	skip []byte
}

// NewDecoder makes a decoder of rows of a projection.
func NewDecoder(p *Projection) *Decoder {
	d := new(Decoder)
	d.row.init(p)
	return d
}

// Find looks at a key of the projection's space. If it is that of a row, or an entry, own is true and Append may follow. If it is
// another table's or index's, skip is the bound at which the projection's keys may go on.
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

// Append appends the row at the key that Find has found, whose value is val, to columns: one for each of the projection.
func (d *Decoder) Append(columns []value.Column, val []byte) error {
	if err := d.row.locate(d.row.key, val); err != nil {
		return err
	}
	return d.row.appendTo(columns)
}
