package fn

import "github.com/crowfoot-db/crowfoot/value"

// Column is the values of an expression for the rows of a batch. They are a Vector, or they lie with a stride in Values: row i has Values[i*Stride]. With a
// Stride of 0 all rows have the same value.
type Column struct {
	Vector *value.Vector // if not nil, Values and Stride mean nothing
	Values []value.Value
	Stride int
}

// At is the value for row i. It stays good.
func (c *Column) At(i int) value.Value {
	if c.Vector != nil {
		return c.Vector.At(i)
	}
	return c.Values[i*c.Stride]
}

// IsNull says whether the value for row i is NULL.
func (c *Column) IsNull(i int) bool {
	if c.Vector != nil {
		return c.Vector.IsNull(i)
	}
	return c.Values[i*c.Stride].IsNull()
}

// Peek is the value for row i. It is good as long as the batch is.
func (c *Column) Peek(i int) value.Value {
	if c.Vector != nil {
		return c.Vector.Peek(i)
	}
	return c.Values[i*c.Stride]
}

// notNull is those of rows for which the value is not NULL, if the column is a Vector. room is used for them if there are others.
func (c *Column) notNull(rows []int32, room *[]int32) []int32 {
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

// Put puts the values for rows into dst, that for row i at dst[k*stride] where rows[k] == i. They stay good.
func (c *Column) Put(dst []value.Value, stride int, rows []int32) {
	if c.Vector != nil {
		c.Vector.Put(dst, stride, rows)
		return
	}
	for k, i := range rows {
		dst[k*stride] = c.Values[int(i)*c.Stride]
	}
}
