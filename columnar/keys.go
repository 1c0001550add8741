package columnar

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// keys computes the keys of a chunk's rows from the columns of the key.
type keys struct {
	layout  *table.Layout
	columns []arrow.Array // one for each part of the key
	values  []value.Value
	key     []byte
}

func newKeys(l *table.Layout) *keys {
	return &keys{layout: l, columns: make([]arrow.Array, len(l.Key)), values: make([]value.Value, len(l.Key))}
}

// at returns the key of row i. The key is valid until the next call.
func (k *keys) at(i int) (key []byte, err error) {
	for part, a := range k.columns {
		if k.values[part], err = keyValue(a, i, k.layout.Key[part].Column.Type); err != nil {
			return nil, err
		}
	}
	k.key = k.layout.AppendKey(k.key[:0], k.values)
	return k.key, nil
}

// find returns the index of the first row in [from, to) whose key is not below bound. If there is no such row, it
// returns the end of this range. It is fast if the row is near the start of the range.
func (k *keys) find(bound []byte, from, to int) (int, error) {
	step := 1
	for from < to {
		at := min(from+step, to) - 1
		key, err := k.at(at)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(key, bound) >= 0 {
			to = at
			break
		}
		from = at + 1
		step *= 2
	}
	for from < to {
		at := int(uint(from+to) / 2)
		key, err := k.at(at)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(key, bound) < 0 {
			from = at + 1
		} else {
			to = at
		}
	}
	return from, nil
}

// keyValue returns value i of the array of a key column. The value may refer to the array's memory.
func keyValue(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	if a.IsValid(i) {
		switch a := a.(type) {
		case *array.String:
			return value.OfString(a.Value(i)), nil
		case *array.Binary:
			if t.Kind == value.Bytes {
				return value.OfBytes(a.Value(i)), nil
			}
		}
	}
	return columnar.StoredValueAt(a, i, t)
}
