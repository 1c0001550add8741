package fn

import "github.com/crowfoot-db/crowfoot/value"

// Column holds the values of an expression for the rows of a batch, either in Vector or in Values. In Values, row i has Values[i*Stride].
// With a Stride of 0 all rows have the same value.
type Column struct {
	Vector *value.Vector // if not nil, Values and Stride are unused
	Values []value.Value
	Stride int
}

// At returns the value for row i. It stays valid after the batch.
func (c *Column) At(i int) value.Value {
	if c.Vector != nil {
		return c.Vector.At(i)
	}
	return c.Values[i*c.Stride]
}

// IsNull reports whether the value for row i is NULL.
func (c *Column) IsNull(i int) bool {
	if c.Vector != nil {
		return c.Vector.IsNull(i)
	}
	return c.Values[i*c.Stride].IsNull()
}

// Peek returns the value for row i. It is valid only as long as the batch.
func (c *Column) Peek(i int) value.Value {
	if c.Vector != nil {
		return c.Vector.Peek(i)
	}
	return c.Values[i*c.Stride]
}

// NotNull filters rows: for a Vector it keeps the rows whose value is not NULL, for other columns it keeps all. The result is in room if it
// leaves rows out.
func (c *Column) NotNull(rows []int32, room *[]int32) []int32 {
	if c.Vector == nil || c.Vector.Nulls == nil {
		return rows
	}
	kept := (*room)[:0]
	for _, i := range rows {
		if !c.Vector.Nulls[i] {
			kept = append(kept, i)
		}
	}
	*room = kept
	return kept
}

// Put copies the values for rows to dst: dst[k*stride] gets the value of row rows[k]. They stay valid after the batch.
func (c *Column) Put(dst []value.Value, stride int, rows []int32) {
	if c.Vector != nil {
		c.Vector.Put(dst, stride, rows)
		return
	}
	for k, i := range rows {
		dst[k*stride] = c.Values[int(i)*c.Stride]
	}
}
