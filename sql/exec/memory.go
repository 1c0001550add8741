package exec

import (
	"context"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxMemory bounds the memory of the rows that a run keeps, in bytes: rows to be sorted, in hash tables, of groups, of
// named subqueries, and rows that DML will change. Spanner has such a limit too and does not publish it
// (https://cloud.google.com/spanner/docs/introspection/query-statistics, AVG_MEMORY_USAGE_PERCENTAGE). One query must not take the memory of a
// server that others use.
const MaxMemory = 1 << 30

const (
	// spillAbove is what a run keeps in memory before its operators spill. The rest of MaxMemory is for what cannot be spilled, such as the
	// array that one group collects.
	spillAbove = MaxMemory / 4 * 3
	// workingMemory is what each operator may keep though the run has more than its share: it sorts, or looks up, so much at
	// a time. Less would make very many small lists.
	workingMemory = 1 << 20
	// workingShare is the part of Env.SpillAbove that an operator may keep then.
	workingShare = 16
	// overdraft is what a run that spills may take beyond its account, from what all such runs share: the working memory of an operator, and
	// the blocks that it writes or merges.
	overdraft = 3 * workingMemory
	// chargeStep is how many bytes a run charges its account at a time.
	chargeStep = 64 << 10
)

// maxValueBytes is the largest value that an expression may make: nothing larger could be stored or returned
// (https://cloud.google.com/spanner/quotas#query_limits has 10 MiB for a column's value, and 100 MiB for a commit).
const maxValueBytes = 100 << 20

// rowMemory counts the bytes of the rows that a run keeps, and charges them to an account.
type rowMemory struct {
	ctx       context.Context
	account   *memory.Account
	now, peak int64
	charged   int64           // to the account
	spilling  *memory.Account // charged the overdraft
	overdrawn int64
	// share is up to how many bytes the operators of the run keep rows in memory, and working what each of them may keep beyond.
	share, working int64
	spills         bool
	short          bool // the account refuses more, or has refused what is overdrawn
}

// start sets the share of a run.
func (m *rowMemory) start(ctx context.Context, env *Env) {
	m.ctx, m.account, m.spills = ctx, env.Memory, env.Spill != nil
	m.share, m.working = spillAbove, workingMemory
	if env.SpillAbove > 0 {
		m.share, m.working = env.SpillAbove, env.SpillAbove/workingShare
	}
}

// full says that an operator that holds h should spill it.
func (m *rowMemory) full(h held) bool {
	return m.spills && (m.short || m.now > m.share) && int64(h) > m.working
}

// held is the part of a run's memory that one operator keeps.
type held int64

// rowOverhead is an estimate of what a row in a list takes beside its values.
const rowOverhead = 16

// keep adds a row to what h holds.
func (m *rowMemory) keep(h *held, row []value.Value) error {
	return m.keepBytes(h, rowOverhead+rowBytes(row))
}

// keepEntry adds an entry of a hashTable to what h holds.
func (m *rowMemory) keepEntry(h *held, key []value.Value) error {
	return m.keepBytes(h, entryBytes+rowBytes(key))
}

// keepBytes adds n bytes to what h holds.
func (m *rowMemory) keepBytes(h *held, n int64) error {
	*h += held(n)
	m.now += n
	m.peak = max(m.peak, m.now)
	if m.now <= m.charged+m.overdrawn {
		return nil
	}
	return m.charge()
}

// charge charges the account what is kept. If the account refuses it, operators are asked to spill before the run fails.
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

// overdraw charges n bytes to what runs that spill share.
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

// release gives back what h holds.
func (m *rowMemory) release(h *held) { m.give(h, int64(*h)) }

// shrink gives back all but a share of what h holds.
func (m *rowMemory) shrink(h *held, share float64) { m.give(h, int64(float64(*h)*(1-share))) }

// give gives back n bytes of what h holds.
func (m *rowMemory) give(h *held, n int64) {
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

// repay gives back what is overdrawn.
func (m *rowMemory) repay() {
	m.spilling.Close()
	m.overdrawn, m.short = 0, false
}

// end gives everything back.
func (m *rowMemory) end() {
	m.repay()
	m.account.Shrink(m.charged)
	m.charged, m.now = 0, 0
}

// rowBytes is the size of the values of a row.
func rowBytes(row []value.Value) (n int64) {
	for i := range row {
		n += footprint(row[i])
	}
	return n
}

// isComputed says whether the value of an expression over a row is a new one, not a column of the row.
func isComputed(e plan.Expr) bool {
	_, column := e.(*plan.Slot)
	return !column
}

// besideRow is the size of values of expressions over a row that is kept too: a column shares its text with the row.
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

// footprint is the size of a value in bytes, with the text or list that it refers to.
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

// largeValue is from how many bytes on values that functions make are charged.
const largeValue = 64 << 10

// madeValues are the large values that the calls of a run have made.
type madeValues struct {
	last  map[int]held // by the call's number, its last one
	bytes int64        // of all
}

// bounded refuses the result of a call if it is larger than maxValueBytes, and charges the run the last large one. Only functions whose result
// can be larger than their arguments need it.
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

// chargeMade charges the run a value of n bytes that a call has made, in the place of the one before.
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
