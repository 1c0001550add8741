package cache

import (
	"sync"

	"github.com/crowfoot-db/crowfoot/memory"
)

// Budget charges a memory.Budget for memory that outlives a request: the entries of caches, and the sessions of
// clients. When the memory.Budget is exhausted, all caches drop entries that were not used lately. A nil *Budget counts
// nothing.
type Budget struct {
	mu       sync.Mutex
	budget   *memory.Budget
	caches   *memory.Account
	sessions *memory.Account
	members  map[aging]bool
	since    int64 // bytes that caches have charged since the last call of age
}

// aging is a cache that can drop entries on demand. age drops its old entries and returns the number of bytes that they
// took.
type aging interface{ age() int64 }

// NewBudget returns a Budget that charges b. If b is nil, it returns nil; each cache then has only its own limit.
func NewBudget(b *memory.Budget) *Budget {
	if b == nil {
		return nil
	}
	return &Budget{budget: b, caches: b.Open(memory.Cache), sessions: b.Open(memory.Session), members: map[aging]bool{}}
}

// reserve charges n bytes for an entry of cache c. It returns false if there is not enough memory.
func (k *Budget) reserve(c aging, n int64) bool {
	if k == nil {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[c] = true
	if k.since += n; k.since > k.budget.Usage().Limit/2 {
		// Without this call, all entries could still be young when the memory is full, and tryGrow would drop them all.
		k.age()
	}
	return k.tryGrow(k.caches, n)
}

// tryGrow charges n bytes to account a. If there is not enough memory, it makes the caches drop old entries and tries
// again. It returns false if there is still not enough. The caller holds k.mu.
func (k *Budget) tryGrow(a *memory.Account, n int64) bool {
	for range 2 { // the second call of age drops the entries that the first call has made old
		if a.TryGrow(n) {
			return true
		}
		k.age()
	}
	return a.TryGrow(n)
}

func (k *Budget) age() {
	k.since = 0
	for c := range k.members {
		k.caches.Shrink(c.age())
	}
}

// free gives back n bytes that reserve has charged.
func (k *Budget) free(n int64) {
	if k == nil || n == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caches.Shrink(n)
}

// leave removes a closed cache from the caches whose method age the Budget calls.
func (k *Budget) leave(c aging) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, c)
}

// Only multiplexed sessions may take the last 1/multiplexedShare of the sessions' memory. If regular sessions could
// take all of the memory, new clients could not begin, because each client first needs a multiplexed session. A client
// can make any number of regular sessions, and each of them stays for an hour.
const multiplexedShare = 4

// accountStep is the largest number of bytes that an account takes from the memory.Budget beyond the bytes that are
// charged to it. KeepSessions leaves room for these bytes: it charges at most the sessions' share of the memory minus
// accountStep. The account of the sessions then never takes more than the share. Otherwise the memory.Budget would
// refuse the excess, and tryGrow would drop cache entries in vain.
const accountStep = 256 << 10

// KeepSessions charges n bytes for new sessions. multiplexed says whether the new sessions are multiplexed ones.
// KeepSessions fails with RESOURCE_EXHAUSTED if all sessions together would then take more than their share of the
// memory.
func (k *Budget) KeepSessions(n int64, multiplexed bool) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	share := k.budget.SessionBytes() - accountStep
	if !multiplexed {
		share -= share / multiplexedShare
	}
	if k.sessions.Used()+n > share || !k.tryGrow(k.sessions, n) {
		return k.sessions.Refusal(n)
	}
	return nil
}

// FreeSessions gives back n bytes that KeepSessions has charged.
func (k *Budget) FreeSessions(n int64) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions.Shrink(n)
}
