package fn

import "github.com/crowfoot-db/crowfoot/value"

// Column holds the values of an expression for the rows of a batch, either in Vector or in Values. In Values, row i
// has the value Values[i*Stride]. If Stride is 0, all rows have the same value.
type Column struct {
	Vector *value.Vector // if not nil, Values and Stride are unused
	Values []value.Value
	Stride int
}

// At returns the value for row i. The value stays valid after the batch.
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

// Peek returns the value for row i. The value is valid only until the next batch.
func (c *Column) Peek(i int) value.Value {
	if c.Vector != nil {
		return c.Vector.Peek(i)
	}
	return c.Values[i*c.Stride]
}

// NotNull returns those elements of the list rows, which holds row numbers, for which the column's Vector is not NULL.
// It builds the result in room, a buffer for reuse. If the column has no Vector, or the Vector has no NULLs, the result
// is the list rows itself.
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

// Put copies the values of some rows to dst: dst[k*stride] gets the value of the row with the number rows[k]. The
// copies stay valid after the batch.
func (c *Column) Put(dst []value.Value, stride int, rows []int32) {
	if c.Vector != nil {
		c.Vector.Put(dst, stride, rows)
		return
	}
	for k, i := range rows {
		dst[k*stride] = c.Values[int(i)*c.Stride]
	}
}
