package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/memory"
)

const (
	// A write is kept twice: by the transaction until it ends, and in the batch that commits it. writeBytes is the overhead of its entry in
	// the transaction's map of writes.
	copies     = 2
	writeBytes = 192
	// A transaction is charged chargeBytes at a time, so that a small one is not charged at all.
	chargeBytes = 64 << 10
	// lockBytes estimates the size of a lock in the lock table, with its key. A transaction is charged for chargeLocks locks at a time.
	lockBytes   = 256
	chargeLocks = chargeBytes / lockBytes
)

// footprint counts the memory of a transaction's writes and locks. The transaction's mu guards it.
type footprint struct {
	account memory.Account
	counts  bool  // the account belongs to a budget; otherwise nothing is charged
	writes  int64 // bytes
	locks   int64 // bytes
	charged int64 // bytes of writes and locks charged to the account so far
	ended   bool  // the account is closed
}

// due returns the bytes that the transaction must be charged now, and counts them as charged. The caller must pass them to Tx.charge.
func (f *footprint) due() (due int64) {
	if due = f.writes + f.locks - f.charged; due < chargeBytes || !f.counts || f.ended {
		return 0
	}
	f.charged += due
	return due
}

// chargeLock charges the transaction for a lock that it was granted. count is the number of its locks and requests when it asked for the lock.
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

// charge charges due bytes, a result of footprint.due. It may wait for memory, so the caller must hold no mutex. request is the account of the
// other memory of the request that needs the bytes; nil if it is not known.
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

// Prepay moves n bytes from another account to the transaction. The account was charged them for writes that the transaction is about to make.
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

// rollbackTo sets the bytes of writes back to an earlier number and gives the difference back to the budget. Locks stay.
func (f *footprint) rollbackTo(writes int64) {
	f.writes = writes
	if less := f.charged - f.writes - f.locks; less > 0 && f.counts && !f.ended {
		f.charged -= less
		f.account.Shrink(less)
	}
}

// end closes the account: the transaction has ended.
func (f *footprint) end() {
	f.account.Close()
	f.ended = true
}
