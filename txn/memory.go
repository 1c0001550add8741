package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/memory"
)

const (
	// copies is 2 because a write is in memory twice: in the transaction until it ends, and in the batch that commits
	// the write. writeBytes is the overhead in bytes of one entry in the transaction's map of writes.
	copies     = 2
	writeBytes = 192
	// A transaction is charged in steps of at least chargeBytes bytes, so a small transaction is never charged.
	chargeBytes = 64 << 10
	// lockBytes estimates the bytes that a lock in the lock table takes, with its key. Locks are charged chargeLocks
	// at a time.
	lockBytes   = 256
	chargeLocks = chargeBytes / lockBytes
)

// footprint counts the memory of a transaction's writes and locks. The transaction's mu guards it.
type footprint struct {
	account memory.Account
	counts  bool  // true if the account belongs to a budget; otherwise nothing is charged
	writes  int64 // estimated bytes that the buffered writes take
	locks   int64 // estimated bytes that the locks take
	charged int64 // bytes of writes and locks charged to the account so far
	ended   bool  // true once the account is closed
}

// due returns the number of bytes that the transaction must be charged now, and adds them to charged. The caller must
// pass the result to Tx.charge.
func (f *footprint) due() (due int64) {
	if due = f.writes + f.locks - f.charged; due < chargeBytes || !f.counts || f.ended {
		return 0
	}
	f.charged += due
	return due
}

// chargeLock charges the transaction for a lock that it was granted. count is the number of locks and waiting
// requests that the transaction had when it asked for the lock, this lock included.
func (t *Tx) chargeLock(ctx context.Context, count int) error {
	if count%chargeLocks != 0 {
		return nil
	}
	t.mu.Lock()
	t.memory.locks = max(t.memory.locks, int64(count)*lockBytes)
	due := t.memory.due()
	t.mu.Unlock()
	return t.charge(ctx, due, nil)
}

// charge charges due bytes, a result of footprint.due. It may wait for memory, so the caller must hold no mutex.
// The parameter request is the account of the memory that the calling request uses outside the transaction; nil if the
// account is not known.
func (t *Tx) charge(ctx context.Context, due int64, request *memory.Account) error {
	if due == 0 {
		return nil
	}
	t.mu.Lock()
	ok := t.memory.ended || t.memory.account.TryGrow(due)
	var charged memory.Account
	if !ok {
		charged = t.memory.account
	}
	t.mu.Unlock()
	if ok {
		return nil
	}
	more := t.opts.Memory.Open(memory.Transaction)
	err := more.Grow(ctx, due, &charged, request)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.memory.charged -= due
	case t.memory.ended:
		more.Close()
	default:
		t.memory.account.Add(more)
	}
	return err
}

// Prepay moves n bytes from another account, the parameter from, to the transaction. That account was charged these
// bytes for writes that the transaction is about to make.
func (t *Tx) Prepay(from *memory.Account, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.memory.counts || t.memory.ended {
		return
	}
	from.Shrink(n)
	if t.memory.account.TryGrow(n) {
		t.memory.charged += n
	}
}

// rollbackTo sets f.writes, the bytes of writes, back to an earlier count, which is the parameter writes. It gives
// the difference back to the budget. The bytes of locks stay charged.
func (f *footprint) rollbackTo(writes int64) {
	f.writes = writes
	if less := f.charged - f.writes - f.locks; less > 0 && f.counts && !f.ended {
		f.charged -= less
		f.account.Shrink(less)
	}
}

// end closes the account when the transaction ends, which gives its bytes back to the budget.
func (f *footprint) end() {
	f.account.Close()
	f.ended = true
}
