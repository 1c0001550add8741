package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Decoder appends stored rows to columns, like Rows.Fill. It serves a reader that finds the rows itself. It serves
// one goroutine.
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

// Find looks at a key in the projection's space. own is true if the key belongs to a row or entry of the projection;
// then Append may follow. If it belongs to another table or index, skip is the next bound at which the projection's
// keys may continue.
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

// Append appends the row whose key Find has found and whose value is val. There is one column for each of the
// projection.
func (d *Decoder) Append(columns []value.Column, val []byte) error {
	if err := d.row.locate(d.row.key, val); err != nil {
		return err
	}
	return d.row.appendTo(columns)
}
