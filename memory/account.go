package memory

import (
	"context"
)

const (
	// The first FreeBytes of every account are not charged to the budget. Most requests need no more, so they use no data that requests share.
	FreeBytes = 32 << 10
	// An account takes whole steps of stepBytes from the budget. When it has more than two steps to spare, it gives them back.
	stepBytes = 128 << 10
)

// An Account counts the memory that one request, statement, stream or transaction takes from a budget. One goroutine may use it at a time. A nil
// account counts nothing and refuses nothing.
type Account struct {
	budget   *Budget
	kind     Kind
	most     int64 // maximum of used
	used     int64 // bytes charged to the account
	reserved int64 // bytes taken from the budget
}

// Open opens an account, which must be closed.
func (b *Budget) Open(kind Kind) *Account {
	a := &Account{budget: b, kind: kind, most: b.limit}
	if kind == Statement {
		a.most = b.StatementBytes()
	}
	return a
}

// Beside opens another account of the same budget, which must be closed. For a nil account it returns nil.
func (a *Account) Beside(kind Kind) *Account {
	if a == nil {
		return nil
	}
	return a.budget.Open(kind)
}

// Used returns the bytes charged to the account.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Grow charges n bytes. If the budget has no room for them, it waits, at most for MaxWait and until ctx ends. It fails with ctx's error or with
// RESOURCE_EXHAUSTED, and then has charged nothing. others are further accounts of the same request, which keep their memory meanwhile. If the n
// bytes would not fit beside them even without other requests, Grow fails at once.
func (a *Account) Grow(ctx context.Context, n int64, others ...*Account) error {
	step, small := a.step(n)
	if step == 0 {
		return nil
	}
	if a.used > a.most {
		a.used -= n
		a.budget.refused[a.kind].Add(1)
		return &TooMuchError{a.used + n, a.most}
	}
	held := a.reserved
	for _, o := range others {
		if o != nil {
			held += o.reserved
		}
	}
	if err := a.budget.reserve(ctx, step, held, small && held+step <= smallBytes, a.kind); err != nil {
		a.used -= n
		return err
	}
	a.reserved += step
	return nil
}

// TryGrow charges n bytes and returns true, if the budget has room for them. It does not wait.
func (a *Account) TryGrow(n int64) bool {
	step, small := a.step(n)
	if step == 0 {
		return true
	}
	if a.used > a.most || !a.budget.tryReserve(step, small, a.kind) {
		a.used -= n
		return false
	}
	a.reserved += step
	return true
}

// Refusal returns the error of a request for which TryGrow has refused n bytes, and which does not wait for them. It counts the refusal.
func (a *Account) Refusal(n int64) error {
	b := a.budget
	b.refused[a.kind].Add(1)
	if a.kind == Session {
		return &SessionsError{a.used}
	}
	if most := b.allowed(n <= smallBytes); n > most {
		return &TooMuchError{n, most}
	}
	return &ExhaustedError{Need: n, Limit: b.limit}
}

// step adds n to used and returns the bytes that must be taken from the budget for it. small reports whether the account then is a small one.
func (a *Account) step(n int64) (step int64, small bool) {
	if a == nil {
		return 0, false
	}
	a.used += n
	lacking := a.used - FreeBytes - a.reserved
	if lacking <= 0 {
		return 0, false
	}
	step = (lacking + stepBytes - 1) / stepBytes * stepBytes
	return step, a.reserved+step <= smallBytes
}

// Add moves the charges of b to a and leaves b as if it were closed. Both must belong to one budget, and neither may be of kind Statement.
func (a *Account) Add(b *Account) {
	a.used += b.used
	a.reserved += b.reserved
	b.used, b.reserved = 0, 0
}

// Shrink gives n bytes back.
func (a *Account) Shrink(n int64) {
	if a == nil {
		return
	}
	a.used -= n
	need := max(a.used-FreeBytes, 0)
	if spare := a.reserved - need; spare > 2*stepBytes || need == 0 && spare > 0 {
		spare = spare / stepBytes * stepBytes
		a.reserved -= spare
		a.budget.release(spare, a.kind)
	}
}

// Close gives everything back. The account may be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	if a.reserved > 0 {
		a.budget.release(a.reserved, a.kind)
	}
	a.used, a.reserved = 0, 0
}
