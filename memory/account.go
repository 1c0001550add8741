package memory

import (
	"context"
)

const (
	// FreeBytes is the number of bytes that every account has without a charge to the budget. Most requests need no
	// more, so they do not touch the budget, which all requests share.
	FreeBytes = 32 << 10
	// stepBytes is the unit in which an account takes bytes from the budget. If an account has more than two steps that
	// it no longer needs, it gives all of these back.
	stepBytes = 128 << 10
)

// An Account counts the memory that one request, statement, stream or transaction takes from a budget. Only one
// goroutine at a time may use it. A nil Account counts nothing and refuses nothing.
type Account struct {
	budget   *Budget
	kind     Kind
	most     int64 // greatest allowed value of the field used
	used     int64 // bytes charged to the account
	reserved int64 // bytes taken from the budget
}

// Open opens an account. The caller must close it.
func (b *Budget) Open(kind Kind) *Account {
	a := &Account{budget: b, kind: kind, most: b.limit}
	if kind == Statement {
		a.most = b.StatementBytes()
	}
	return a
}

// Beside opens another account of the same budget. The caller must close it. For a nil account Beside returns nil.
func (a *Account) Beside(kind Kind) *Account {
	if a == nil {
		return nil
	}
	return a.budget.Open(kind)
}

// Used returns the number of bytes charged to the account.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Grow charges n bytes. If the budget does not have them, Grow waits for them until MaxWait has passed or ctx ends. If
// Grow fails, it has charged nothing. The error is then ctx's error, a *TooMuchError or an *ExhaustedError. The
// parameter others holds further accounts of the same request, which keep their memory during the wait. If the n bytes,
// the bytes of this account and those of the further accounts together exceed what the budget can give to one request,
// Grow fails at once.
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

// TryGrow charges n bytes and returns true if the budget has them. Otherwise it returns false at once.
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

// Refusal returns the error with which a request fails after TryGrow has refused it n bytes, if the request does not
// wait for these bytes. Refusal also counts the refusal.
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

// step adds n to a.used, and returns how many bytes the account must take from the budget for that. small reports
// whether the account is then small: at most smallBytes.
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

// Add moves the charges of b to a; b is then as if it were closed. Both accounts must belong to the same budget and be
// of the same kind. This kind must not be Statement, because Add does not check Budget.StatementBytes.
func (a *Account) Add(b *Account) {
	a.used += b.used
	a.reserved += b.reserved
	b.used, b.reserved = 0, 0
}

// Shrink takes back a charge of n bytes.
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

// Close takes back all charges. The account may be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	if a.reserved > 0 {
		a.budget.release(a.reserved, a.kind)
	}
	a.used, a.reserved = 0, 0
}
