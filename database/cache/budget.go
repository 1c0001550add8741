package cache

import (
	"sync"

	"github.com/crowfoot-db/crowfoot/memory"
)

// Budget charges a memory.Budget for memory that outlives a request: the entries of caches, and sessions. When that budget
// is exhausted, all caches drop entries that were not used lately. A nil Budget counts nothing.
type Budget struct {
	mu       sync.Mutex
	budget   *memory.Budget
	caches   *memory.Account
	sessions *memory.Account
	members  map[aging]bool
	since    int64 // bytes that caches have taken since they last aged
}

// aging is a cache that can make room. age drops old entries and returns the number of bytes that it has freed.
type aging interface{ age() int64 }

// NewBudget returns a Budget that charges b. It returns nil for a nil budget: only each cache's own limit
// applies then.
func NewBudget(b *memory.Budget) *Budget {
	if b == nil {
		return nil
	}
	return &Budget{budget: b, caches: b.Open(memory.Cache), sessions: b.Open(memory.Session), members: map[aging]bool{}}
}

// reserve charges n bytes for an entry of a cache, and reports whether there is room.
func (k *Budget) reserve(c aging, n int64) bool {
	if k == nil {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[c] = true
	if k.since += n; k.since > k.budget.Usage().Limit/2 {
		k.age() // so that caches always hold some recently used entries
	}
	return k.tryGrow(k.caches, n)
}

// tryGrow charges n bytes to an account, and reports whether there is room. The caller holds k.mu.
func (k *Budget) tryGrow(a *memory.Account, n int64) bool {
	for range 2 { // the second age drops entries that the first has moved to the old generation
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

// free gives n bytes of a cache back.
func (k *Budget) free(n int64) {
	if k == nil || n == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caches.Shrink(n)
}

// leave removes a closed cache from those that age.
func (k *Budget) leave(c aging) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, c)
}

// multiplexedShare is the part of the session memory, 1/multiplexedShare, that only multiplexed sessions may take. A
// client needs one of these to begin at all, while it can make any number of regular sessions, each of which stays for
// an hour.
const multiplexedShare = 4

// accountStep is an upper bound of the memory that an account takes beyond its need. Sessions are refused before they
// would need that memory, since caches cannot make room for it.
const accountStep = 256 << 10

// KeepSessions charges n bytes for sessions. It fails with RESOURCE_EXHAUSTED if sessions have taken all the memory
// that they may.
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
