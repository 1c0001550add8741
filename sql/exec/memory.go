package exec

import (
	"context"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxMemory is the greatest number of bytes of rows that a run may keep in memory. These are rows to be sorted,
// rows in hash tables, groups, rows of named subqueries, and rows that DML will change. The limit stops one query
// from taking the memory that other queries of the server need. Spanner has such a limit too and does not publish
// it (https://cloud.google.com/spanner/docs/introspection/query-statistics, AVG_MEMORY_USAGE_PERCENTAGE).
const MaxMemory = 1 << 30

const (
	// spillAbove is the number of bytes of rows that a run keeps in memory before its operators spill. The other
	// quarter of MaxMemory is for values that cannot be spilled, such as the array that one group collects.
	spillAbove = MaxMemory / 4 * 3
	// workingMemory is the number of bytes that each operator may keep even when the run keeps more than spillAbove
	// bytes and its operators must spill. An operator then sorts or hashes workingMemory bytes at a time. With less
	// memory, it would write very many small lists to disk.
	workingMemory = 1 << 20
	// workingShare replaces workingMemory if Env.SpillAbove is set: an operator may then keep
	// Env.SpillAbove/workingShare bytes.
	workingShare = 16
	// overdraft is the number of bytes that a run may take although its account has refused them. Only a run that can
	// spill may do so. The bytes are charged to an account that all such runs share. They suffice for the working memory
	// of an operator, and for the blocks of the lists that the operator writes or merges.
	overdraft = 3 * workingMemory
	// chargeStep is the unit of charges in bytes: a run charges its account a multiple of it.
	chargeStep = 64 << 10
)

// maxValueBytes is the size in bytes of the largest value that an expression may return. A larger value could be
// neither stored nor returned (https://cloud.google.com/spanner/quotas#query_limits has 10 MiB for a column's
// value, and 100 MiB for a commit).
const maxValueBytes = 100 << 20

// rowMemory counts the bytes of the rows that a run keeps in memory, and charges them to an account.
type rowMemory struct {
	ctx       context.Context
	account   *memory.Account
	now, peak int64
	charged   int64           // bytes charged to the run's own account
	spilling  *memory.Account // the account that all spilling runs share; nil before the run overdraws its own account
	overdrawn int64           // bytes charged to the shared account (the field spilling)
	// share is the number of bytes of rows that the run may keep before its operators spill. working is the number
	// of bytes that each operator may keep even when the run keeps more than share.
	share, working int64
	spills         bool
	short          bool // the account has refused bytes, so the run has overdrawn it
}

// start sets the account of a run, and how many bytes the run and its operators may keep.
func (m *rowMemory) start(ctx context.Context, env *Env) {
	m.ctx, m.account, m.spills = ctx, env.Memory, env.Spill != nil
	m.share, m.working = spillAbove, workingMemory
	if env.SpillAbove > 0 {
		m.share, m.working = env.SpillAbove, env.SpillAbove/workingShare
	}
}

// full reports whether an operator that keeps h bytes must spill them.
func (m *rowMemory) full(h held) bool {
	return m.spills && (m.short || m.now > m.share) && int64(h) > m.working
}

// held is how many bytes of the run's memory one operator keeps.
type held int64

// rowOverhead estimates how many bytes of memory a row in a list takes in addition to its values.
const rowOverhead = 16

// keep counts the bytes of a row in a list: it adds them to h and charges the account.
func (m *rowMemory) keep(h *held, row []value.Value) error {
	return m.keepBytes(h, rowOverhead+rowBytes(row))
}

// keepEntry counts the bytes of an entry of a hashTable: it adds them to h and charges the account.
func (m *rowMemory) keepEntry(h *held, key []value.Value) error {
	return m.keepBytes(h, entryBytes+rowBytes(key))
}

// keepBytes adds n bytes to h and charges the account.
func (m *rowMemory) keepBytes(h *held, n int64) error {
	*h += held(n)
	m.now += n
	m.peak = max(m.peak, m.now)
	if m.now <= m.charged+m.overdrawn {
		return nil
	}
	return m.charge()
}

// charge charges the account for the bytes that are kept and not yet charged. If the account refuses and the run can
// spill, charge overdraws the account; the method full then makes the operators spill. If the overdraft is used up or
// the run cannot spill, charge calls the account's method Grow. Grow waits until the bytes are free, and fails if they
// do not become free in time.
func (m *rowMemory) charge() error {
	if m.now > MaxMemory {
		return usererror.QueryMemory(MaxMemory)
	}
	n := (m.now - m.charged - m.overdrawn + chargeStep - 1) / chargeStep * chargeStep
	if !m.account.TryGrow(n) {
		if m.spills && m.overdrawn+n <= overdraft {
			return m.overdraw(n)
		}
		if err := m.account.Grow(m.ctx, n); err != nil {
			return err
		}
	}
	m.charged += n
	return nil
}

// overdraw charges n bytes to the account that all spilling runs share, because the run's own account has refused
// them.
func (m *rowMemory) overdraw(n int64) error {
	if m.spilling == nil {
		m.spilling = m.account.Beside(memory.Spilling)
	}
	if err := m.spilling.Grow(m.ctx, n); err != nil {
		return err
	}
	m.overdrawn += n
	m.short = true
	return nil
}

// release gives all bytes of h back to the account.
func (m *rowMemory) release(h *held) { m.releaseBytes(h, int64(*h)) }

// shrink keeps the fraction share (0 to 1) of the bytes of h, and gives the other bytes back to the account.
func (m *rowMemory) shrink(h *held, share float64) { m.releaseBytes(h, int64(float64(*h)*(1-share))) }

// releaseBytes gives n bytes of h back to the account.
func (m *rowMemory) releaseBytes(h *held, n int64) {
	*h -= held(n)
	m.now -= n
	if m.short && m.now <= m.charged {
		m.repay()
	}
	if spare := (m.charged - m.now) / chargeStep * chargeStep; spare >= workingMemory {
		m.account.Shrink(spare)
		m.charged -= spare
	}
}

// repay gives all overdrawn bytes back to the shared account.
func (m *rowMemory) repay() {
	m.spilling.Close()
	m.overdrawn, m.short = 0, false
}

// end gives back all bytes that the run has charged.
func (m *rowMemory) end() {
	m.repay()
	m.account.Shrink(m.charged)
	m.charged, m.now = 0, 0
}

// rowBytes returns how many bytes of memory the values of a row take.
func rowBytes(row []value.Value) (n int64) {
	for i := range row {
		n += footprint(row[i])
	}
	return n
}

// isComputed reports whether an expression over a row computes a new value. If not, the value of the expression is
// a column of the row.
func isComputed(e plan.Expr) bool {
	_, column := e.(*plan.Slot)
	return !column
}

// besideRow returns how many bytes of memory the results of expressions over a row take in addition to the row. The
// results are in the slice values, which is kept together with the row. Where computed is false, the expression is a
// column of the row, so the bytes of the row already include the string or list of the result.
func besideRow(values []value.Value, computed []bool) int64 {
	n := int64(len(values)) * valueBytes
	for i, v := range values {
		if computed[i] {
			n += footprint(v) - valueBytes
		}
	}
	return n
}

const valueBytes = int64(unsafe.Sizeof(value.Value{}))

// footprint returns how many bytes of memory a value takes, including the string or list that it refers to.
func footprint(v value.Value) int64 {
	if v.IsNull() {
		return valueBytes
	}
	switch v.Kind() {
	case value.String, value.Bytes, value.JSON, value.Proto:
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

// largeValue is a size in bytes. If the result of a function call is larger, the run is charged for it (see bounded).
const largeValue = 64 << 10

// madeValues counts the large values that function calls of a run have returned.
type madeValues struct {
	last  map[int]held // the bytes charged for the last large value of each call, by the number of the call
	bytes int64        // the bytes of all large values so far
}

// bounded compiles a call so that a result larger than maxValueBytes is an error, and the call's last large result
// is charged to the run. f computes the call, and t is the type of the result. The compiler does not use bounded for
// calls whose result is about as large as one of their arguments, such as casts and IF.
func (c *compiler) bounded(t *value.Type, f eval) eval {
	var size func(value.Value) int64
	switch t.Kind {
	case value.String, value.Bytes, value.JSON, value.Proto:
		size = func(v value.Value) int64 { return int64(len(v.AsString())) }
	case value.Array:
		size = func(v value.Value) int64 { return int64(len(v.AsList())) * valueBytes }
	default:
		return f
	}
	call := c.prog.bounded
	c.prog.bounded++
	return func(r *run, row []value.Value) (value.Value, error) {
		v, err := f(r, row)
		if err != nil || v.IsNull() {
			return v, err
		}
		n := size(v)
		if n <= largeValue && r.made.last == nil {
			return v, nil
		}
		return v, r.chargeMade(call, n)
	}
}

// chargeMade charges the run for a value of n bytes that a call has returned, and gives back what was charged for
// the call's previous value. call is the number of the call. A value above maxValueBytes is an error.
func (r *run) chargeMade(call int, n int64) error {
	if n > maxValueBytes {
		return usererror.ValueTooLarge(maxValueBytes)
	}
	if r.made.last == nil {
		r.made.last = map[int]held{}
	}
	h := r.made.last[call]
	r.memory.release(&h)
	var err error
	if n > largeValue {
		r.made.bytes += n
		err = r.memory.keepBytes(&h, n)
	}
	r.made.last[call] = h
	return err
}
