package exec

import (
	"unsafe"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxMemory bounds the memory of the rows that a run keeps, in bytes: rows to be sorted, in hash tables, of groups, of
// named subqueries, and rows that DML will change. Spanner has such a limit too and does not publish it
// (https://cloud.google.com/spanner/docs/introspection/query-statistics, AVG_MEMORY_USAGE_PERCENTAGE). There is no spilling to disk,
// and one query must not take the memory of a server that others use.
const MaxMemory = 1 << 30

// maxValueBytes is the largest value that an expression may make: nothing larger could be stored or returned
// (https://cloud.google.com/spanner/quotas#query_limits has 10 MiB for a column's value, and 100 MiB for a commit).
const maxValueBytes = 100 << 20

// rowMemory counts the bytes of the rows that a run keeps.
type rowMemory struct{ now, peak int64 }

// held is the part of a run's memory that one operator keeps.
type held int64

// rowOverhead is an estimate of what a row takes beside its values, such as its entry in a hash table.
const rowOverhead = 16

// keep adds a row to what h holds.
func (m *rowMemory) keep(h *held, row []value.Value) error {
	n := int64(rowOverhead)
	for i := range row {
		n += footprint(row[i])
	}
	return m.keepBytes(h, n)
}

// keepBytes adds n bytes to what h holds.
func (m *rowMemory) keepBytes(h *held, n int64) error {
	*h += held(n)
	m.now += n
	if m.now <= m.peak {
		return nil
	}
	m.peak = m.now
	if m.now > MaxMemory {
		return usererror.QueryMemory(MaxMemory)
	}
	return nil
}

// release gives back what h holds.
func (m *rowMemory) release(h *held) {
	m.now -= int64(*h)
	*h = 0
}

// shrink gives back all but a share of what h holds.
func (m *rowMemory) shrink(h *held, share float64) {
	less := held(float64(*h) * (1 - share))
	*h -= less
	m.now -= int64(less)
}

const valueBytes = int64(unsafe.Sizeof(value.Value{}))

// footprint is the size of a value in bytes, with the text or list that it refers to.
func footprint(v value.Value) int64 {
	if v.IsNull() {
		return valueBytes
	}
	switch v.Kind() {
	case value.String, value.Bytes, value.JSON:
		return valueBytes + int64(len(v.AsString()))
	case value.Array, value.Struct:
		n := valueBytes
		for _, e := range v.AsList() {
			n += footprint(e)
		}
		return n
	}
	return valueBytes
}

// bounded refuses the result of a call if it is larger than maxValueBytes. Only functions whose result can be larger than their arguments need
// it.
func bounded(e *plan.Call, f eval) eval {
	limit := maxValueBytes
	switch e.Func.Type.Kind {
	case value.String, value.Bytes, value.JSON:
		return func(r *run, row []value.Value) (value.Value, error) {
			v, err := f(r, row)
			if err == nil && !v.IsNull() && len(v.AsString()) > limit {
				return value.Value{}, usererror.ValueTooLarge(limit)
			}
			return v, err
		}
	case value.Array:
		return func(r *run, row []value.Value) (value.Value, error) {
			v, err := f(r, row)
			if err == nil && !v.IsNull() && int64(len(v.AsList()))*valueBytes > int64(limit) {
				return value.Value{}, usererror.ValueTooLarge(limit)
			}
			return v, err
		}
	}
	return f
}
