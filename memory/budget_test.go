package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

func reservedBytes(b *Budget) int64 { return b.Usage().Reserved }

// TestFreeBytes checks that an account below FreeBytes takes nothing from the budget. So small requests do not contend
// for the budget's counter.
func TestFreeBytes(t *testing.T) {
	b := NewBudget(mib)
	a := b.Open(Request)
	if !a.TryGrow(FreeBytes) || reservedBytes(b) != 0 {
		t.Errorf("%d bytes are taken for the first %d", reservedBytes(b), FreeBytes)
	}
	if !a.TryGrow(1) || reservedBytes(b) != stepBytes {
		t.Errorf("one more byte takes %d", reservedBytes(b))
	}
	a.Shrink(1)
	if reservedBytes(b) != 0 || a.Used() != FreeBytes {
		t.Errorf("after giving it back %d are taken, %d used", reservedBytes(b), a.Used())
	}
}

// TestSteps: an account takes and gives back bytes in steps, so it has at most a few steps more than it needs. When it
// is closed, it gives back everything.
func TestSteps(t *testing.T) {
	b := NewBudget(64 * mib)
	a := b.Open(Request)
	for range 100 {
		a.TryGrow(100_000)
		if over := reservedBytes(b) - a.Used(); over > stepBytes || over < -FreeBytes {
			t.Fatalf("%d taken for %d", reservedBytes(b), a.Used())
		}
	}
	for range 100 {
		a.Shrink(100_000)
		if over := reservedBytes(b) - a.Used(); over > 3*stepBytes || over < -FreeBytes {
			t.Fatalf("%d taken for %d", reservedBytes(b), a.Used())
		}
	}
	a.TryGrow(5 * mib)
	a.Close()
	if reservedBytes(b) != 0 || a.Used() != 0 {
		t.Errorf("a closed account keeps %d", reservedBytes(b))
	}
}

// TestWait: if an account needs more than the budget has left, it waits until another account gives enough back.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(64 * mib)
		first, second := b.Open(Transaction), b.Open(Transaction)
		first.TryGrow(50 * mib)
		var err error
		served := false
		go func() { err, served = second.Grow(t.Context(), 40*mib), true }()
		synctest.Wait()
		if served || b.Usage().Waiting != 1 {
			t.Fatal("it did not wait")
		}
		time.Sleep(MaxWait / 2)
		first.Close()
		synctest.Wait()
		if !served || err != nil || second.Used() != 40*mib {
			t.Errorf("served %t, %v, %d bytes", served, err, second.Used())
		}
	})
}

// TestRefused: an account that waits in vain gets an ExhaustedError after MaxWait. So two accounts that wait for each
// other's memory do not wait forever.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(64 * mib)
		errs := make(chan error, 2)
		for range 2 {
			a := b.Open(Transaction)
			if !a.TryGrow(25 * mib) {
				t.Error("no room for the first part")
			}
			go func() {
				errs <- a.Grow(t.Context(), 25*mib)
				a.Close()
			}()
		}
		start := time.Now()
		first, second := <-errs, <-errs
		if waited := time.Since(start); waited != MaxWait {
			t.Errorf("they waited for %v", waited)
		}
		var e *ExhaustedError
		if !errors.As(errors.Join(first, second), &e) || *e != (ExhaustedError{25 * mib, 64 * mib, MaxWait}) {
			t.Errorf("answered %v, %v", first, second)
		}
		if n := b.Usage().Refused[Transaction]; n == 0 {
			t.Error("nothing was counted as refused")
		}
	})
}

// TestDeadline: an account stops waiting at the deadline of its request.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(64 * mib)
		b.Open(Transaction).TryGrow(50 * mib)
		ctx, cancel := context.WithTimeout(t.Context(), MaxWait/4)
		defer cancel()
		a := b.Open(Request)
		if err := a.Grow(ctx, 30*mib); !errors.Is(err, context.DeadlineExceeded) || a.Used() != 0 {
			t.Errorf("%v, %d bytes used", err, a.Used())
		}
		if b.Usage().Waiting != 0 {
			t.Error("it is still listed as waiting")
		}
	})
}

// TestNeverFits: a request for more bytes than an account can ever have does not wait. It gets a TooMuchError at once.
func TestNeverFits(t *testing.T) {
	b := NewBudget(64 * mib)
	for kind, n := range map[Kind]int64{Request: 65 * mib, Statement: b.StatementBytes() + 1, Transaction: 64 * mib} {
		a := b.Open(kind)
		if err := a.Grow(t.Context(), n); !errors.As(err, new(*TooMuchError)) {
			t.Errorf("%v of %d bytes: %v", kind, n, err)
		}
		if a.TryGrow(n) || a.Used() != 0 || reservedBytes(b) != 0 {
			t.Errorf("%v of %d bytes has room", kind, n)
		}
	}
}

// TestNeverFitsBesideOthers checks when Grow refuses more memory to a request that already has several accounts. If all
// accounts of the request together would exceed the budget, Grow refuses at once. If the budget lacks the memory only
// because of other requests, Grow waits for them to give memory back.
func TestNeverFitsBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(64 * mib)
		message, writes, stranger := b.Open(Request), b.Open(Transaction), b.Open(Request)
		message.TryGrow(30 * mib)
		writes.TryGrow(20 * mib)
		more := b.Open(Transaction)
		if err := more.Grow(t.Context(), 20*mib, message, nil, writes); !errors.As(err, new(*TooMuchError)) || more.Used() != 0 {
			t.Errorf("more than is left beside what the request has: %v", err)
		}
		stranger.TryGrow(5 * mib)
		if err := more.Grow(t.Context(), 8*mib, message, writes); !errors.As(err, new(*ExhaustedError)) {
			t.Errorf("more than is left beside other requests: %v", err)
		}
	})
}

// TestSmall: small accounts get memory when large ones have taken all that they may take, even if large ones wait.
func TestSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(64 * mib)
		large := b.Open(Transaction)
		for large.TryGrow(stepBytes) {
		}
		go func() {
			another := b.Open(Transaction)
			defer another.Close()
			if another.Grow(t.Context(), 10*mib) == nil {
				t.Error("there is room for another large one")
			}
		}()
		synctest.Wait()
		if b.Usage().Waiting != 1 {
			t.Error("the large account does not wait")
		}
		small := b.Open(Stream)
		if !small.TryGrow(mib / 2) {
			t.Errorf("no room for a small account: %+v", b.Usage())
		}
		large.Shrink(2 * mib)
		synctest.Wait()
		if b.Usage().Waiting != 1 {
			t.Error("the large account was served with too little")
		}
		time.Sleep(MaxWait)
	})
}

// TestStatements checks that statements, however many there are, leave memory in the budget for a commit. A commit
// needs this memory, because it cannot spill data to disk.
func TestStatements(t *testing.T) {
	b := NewBudget(96 * mib)
	var all []*Account
	for range 20 {
		a := b.Open(Statement)
		all = append(all, a)
		for a.TryGrow(mib) {
		}
	}
	if took := reservedBytes(b); took > 32*mib+20*smallBytes || took < 32*mib {
		t.Errorf("they take %d", took)
	}
	if !b.Open(Transaction).TryGrow(30 * mib) {
		t.Error("no room for a commit")
	}
	for _, a := range all {
		a.Close()
	}
	if took := reservedBytes(b); took > 31*mib {
		t.Errorf("%d are taken after they have ended", took)
	}
}

// TestNilAccount: a nil account counts nothing and refuses nothing.
func TestNilAccount(t *testing.T) {
	var a *Account
	if err := a.Grow(t.Context(), 1<<40); err != nil || !a.TryGrow(1<<40) || a.Used() != 0 {
		t.Error(err)
	}
	a.Shrink(1 << 40)
	a.Close()
}

// TestSpillingShare: all spilling statements together get at most 1/spillingShare of the budget, here 8 MiB. If large
// accounts have taken all that they may take, spilling statements still get half of the part for small accounts, here
// 2 MiB.
func TestSpillingShare(t *testing.T) {
	b := NewBudget(64 << 20)
	large := b.Open(Request)
	if !large.TryGrow(60 << 20) {
		t.Fatal("there is no room for the large account")
	}
	fill := func() (n int64) {
		for b.Open(Spilling).TryGrow(1 << 20) {
			n++
		}
		return n
	}
	if n := fill(); n != 2 {
		t.Errorf("%d MiB beside the large account, want 2", n)
	}
	large.Close()
	if n := fill(); n != 6 {
		t.Errorf("%d MiB more, want 6", n)
	}
}
