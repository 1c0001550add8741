package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/memory"
)

const (
	// A write is kept twice: by the transaction until it ends, and in the batch that commits it. writeBytes is what else the transaction keeps
	// of it: its place among the others.
	copies     = 2
	writeBytes = 192
	// A transaction is charged chargeBytes at a time, so that a small one is not charged at all.
	chargeBytes = 64 << 10
	// lockBytes is about what a lock takes in the lock table, with its key. A transaction is charged for chargeLocks at a time.
	lockBytes   = 256
	chargeLocks = chargeBytes / lockBytes
)

// footprint is what a transaction keeps in memory: writes, and locks on what it has read. The transaction's mu guards it.
type footprint struct {
	account memory.Account
	counts  bool  // the account is one of a budget
	writes  int64 // bytes
	locks   int64 // bytes
	charged int64 // of both, to the account
	ended   bool  // the account is closed
}

// due is how many bytes the transaction must be charged now. The caller charges them.
func (f *footprint) due() (due int64) {
	if due = f.writes + f.locks - f.charged; due < chargeBytes || !f.counts || f.ended {
		return 0
	}
	f.charged += due
	return due
}

// chargeLock charges the transaction for a lock that it has got: with it, it had count of them, and may have given up requests for some since.
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

// charge charges due bytes, which footprint.due has returned. It may wait for them, so the caller must hold no mutex. request is what else the
// request is charged that needs them; nil if that is not known.
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

// Prepay moves n bytes, which another account was charged for what the transaction is about to write, to the transaction.
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

// rollbackTo takes back all but so many bytes of writes. Locks stay.
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
