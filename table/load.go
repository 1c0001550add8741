package table

import (
	"context"
	"encoding/binary"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A loader encodes keys and values of rows directly from columns of input. It works only for tables where a write
// consists of the row's key and value alone, and both follow from the row's own columns (see isPlain).
type loader struct {
	*rowBuilder
	columns []loadedColumn // all columns of the mutation
	key     []value.Source // the input column of each key part
	stored  []loadedColumn // the columns that are stored in rows' values, sorted by ID
}

// loadedColumn is a column of a mutation.
type loadedColumn struct {
	column *schema.Column
	source value.Source
	check  loadCheck
	id     []byte // the column ID, encoded as in the rows' values
}

// loadCheck says what must be checked before a value of a column is written.
type loadCheck uint8

const (
	checkNull  loadCheck = iota // only that the value is not NULL where NULL is not allowed
	checkShort                  // as checkNull, and that the text is valid and not longer than the column permits
	checkWhole                  // all checks of checkValue
)

// isPlain reports whether the rows of a mutation can be encoded column by column, without other rows. This is so if
// three conditions hold. The mutation is an Insert, or it need not read the existing row (blind). It gives a value for
// each key column and for each column with a default. The table has no parent, indexes, foreign keys, change streams or
// CHECKs, and no columns that a write computes (generated columns that are stored or in the key, ON UPDATE).
func (b *rowBuilder) isPlain() bool {
	d := b.descriptor
	if !b.blind && b.op != Insert || len(d.indexes)+len(d.foreign)+len(d.watches)+len(b.generated)+len(b.refreshed)+len(b.table.Checks) > 0 || d.parent != nil {
		return false
	}
	for _, c := range b.omitted {
		if c.Default != nil || c.KeyOrdinal >= 0 {
			return false
		}
	}
	return true
}

// mutateColumns applies a mutation whose input comes as columns (Mutation.Sources) instead of rows.
func (c *Changes) mutateColumns(ctx context.Context, b *rowBuilder, m *Mutation) error {
	if b.isPlain() && (c.actions == nil || b.cascades == nil) {
		return c.load(ctx, newLoader(b, m), m.Count)
	}
	vals := make([]value.Value, len(m.Columns))
	for row := range m.Count {
		for i, s := range m.Sources {
			vals[i] = s.Value(row)
		}
		if err := c.mutateRow(ctx, b, vals); err != nil {
			return err
		}
	}
	return nil
}

func newLoader(b *rowBuilder, m *Mutation) *loader {
	l := &loader{rowBuilder: b, key: make([]value.Source, len(b.table.Key))}
	byOrdinal := make([]*loadedColumn, len(b.table.Columns))
	l.columns = make([]loadedColumn, len(m.Columns))
	for i, c := range m.Columns {
		l.columns[i] = loadedColumn{column: c, source: m.Sources[i], check: checkOf(c), id: binary.AppendUvarint(nil, uint64(c.ID))}
		byOrdinal[c.Ordinal] = &l.columns[i]
	}
	for i, p := range b.table.Key {
		l.key[i] = byOrdinal[p.Column.Ordinal].source
	}
	for _, c := range b.stored {
		if given := byOrdinal[c.Ordinal]; given != nil {
			l.stored = append(l.stored, *given)
		}
	}
	return l
}

func checkOf(c *schema.Column) loadCheck {
	switch {
	case c.Becoming != nil || c.AllowCommitTimestamp:
		return checkWhole
	}
	switch c.Type.Kind {
	case value.Bool, value.Int64, value.Float64, value.Float32, value.Timestamp, value.Date, value.Numeric, value.UUID, value.Interval:
		return checkNull
	case value.String, value.Bytes:
		return checkShort
	}
	return checkWhole
}

// load writes all rows of the input as one Run. The parameter count is their number.
func (c *Changes) load(ctx context.Context, l *loader, count int) error {
	if count == 0 {
		return nil
	}
	if err := c.add(l.inserts * int64(count)); err != nil {
		return err
	}
	run, err := l.run(c, count)
	if err != nil {
		return err
	}
	c.bytes += int64(run.Bytes())
	fresh := l.op == Insert
	existing := run.Sort()
	if existing == nil || !fresh {
		if existing, err = c.w.PutRun(ctx, run, fresh); err != nil {
			return err
		}
	}
	if fresh && existing != nil {
		return usererror.RowExists(l.table.FullName(), l.layout.storedText(existing))
	}
	c.wrote(l.table, int64(count), run.Bytes())
	return nil
}

// run checks all rows of the input and makes a Run of their keys and values. The parameter count is their number.
func (l *loader) run(c *Changes, count int) (*Run, error) {
	var r *Run
	for row := range count {
		for i := range l.columns {
			if err := l.columns[i].checkAt(c, l.table, row); err != nil {
				return nil, err
			}
		}
		if row == 0 {
			r = NewRun(count, count*(l.rowBytes(0)+rowBytesSpread))
		}
		if err := l.add(c, r, row); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// rowBytesSpread is the number of bytes that a run reserves for each row beyond the size of its first row, because
// rows differ in length. The buffer grows if rows are longer still.
const rowBytesSpread = 16

// rowBytes estimates how many bytes the key and value of a row take.
func (l *loader) rowBytes(row int) int {
	n := 16
	for _, c := range l.columns {
		if !c.source.IsNull(row) {
			n += 3 + c.source.RowSize(row)
		}
	}
	return n
}

// checkAt checks the value of a row in this column. l.check says which checks are needed.
func (l *loadedColumn) checkAt(c *Changes, t *schema.Table, row int) error {
	if !l.source.IsNull(row) {
		switch l.check {
		case checkNull:
			return nil
		case checkShort:
			if l.source.IsShort(row, l.column.MaxLength) {
				return nil
			}
		}
	} else if l.check != checkWhole && !l.column.NotNull {
		return nil
	}
	return c.checkValue(t, l.column, l.source.Value(row))
}

// add appends one row of the input to the run r.
func (l *loader) add(c *Changes, r *Run, row int) error {
	c.key = l.appendKey(c.key[:0], row)
	if err := l.checkKeySizeAt(len(c.key), row); err != nil {
		return err
	}
	c.val = append(c.val[:0], rowVersion)
	for i := range l.stored {
		s := &l.stored[i]
		if s.source.IsNull(row) {
			continue
		}
		c.val = append(c.val, s.id...)
		c.val = binary.AppendUvarint(c.val, uint64(s.source.RowSize(row)))
		c.val = s.source.AppendRow(c.val, row)
	}
	if c.bytes+int64(r.Bytes()+len(c.key)+len(c.val)) > c.maxBytes {
		return usererror.CommitTooLarge(MaxCommitBytes)
	}
	r.Add(c.key, c.val)
	return nil
}

// appendKey appends the key of one row of the input to dst.
func (l *loader) appendKey(dst []byte, row int) []byte {
	markers := l.layout.markers
	for i := 0; ; i++ {
		for len(markers) > 0 && markers[0].before == i {
			dst = append(dst, markers[0].id...)
			markers = markers[1:]
		}
		if i == len(l.key) {
			return append(dst, keyEnd)
		}
		dst = l.key[i].AppendKey(dst, row, l.layout.Key[i].Desc)
	}
}

// checkKeySizeAt returns an error if the key of a row of the input is longer than MaxKeyBytes. The parameter encoded is
// the length in bytes of the encoded key.
func (l *loader) checkKeySizeAt(encoded, row int) error {
	if encoded <= safeKeyBytes {
		return nil
	}
	for i, p := range l.layout.Key {
		l.row[p.Column.Ordinal] = l.key[i].Value(row)
	}
	return l.layout.checkKeySize(encoded, l.row)
}
