package database

import (
	"sync"

	"github.com/crowfoot-db/crowfoot/memory"
)

// keeper charges a budget for what stays in memory when a request has ended: what the caches of all databases keep, and sessions. When there is
// no room, all caches drop what was not used lately. A nil keeper counts nothing.
type keeper struct {
	mu       sync.Mutex
	budget   *memory.Budget
	caches   *memory.Account
	sessions *memory.Account
	members  map[aging]bool
	since    int64 // bytes that caches took since they aged last
}

// aging is a cache that can make room: age says how many bytes it has dropped.
type aging interface{ age() int64 }

// newKeeper takes from a budget, nil for no limit but each cache's own.
func newKeeper(b *memory.Budget) *keeper {
	if b == nil {
		return nil
	}
	return &keeper{budget: b, caches: b.Open(memory.Cache), sessions: b.Open(memory.Session), members: map[aging]bool{}}
}

// take charges n bytes for an entry of a cache.
func (k *keeper) take(c aging, n int64) bool {
	if k == nil {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members[c] = true
	if k.since += n; k.since > k.budget.Usage().Limit/2 {
		k.age() // so that what was not used lately is never all there is
	}
	return k.grow(k.caches, n)
}

// grow charges n bytes to an account. k.mu is held.
func (k *keeper) grow(a *memory.Account, n int64) bool {
	for range 2 { // the second time caches drop what the first has made old
		if a.TryGrow(n) {
			return true
		}
		k.age()
	}
	return a.TryGrow(n)
}

func (k *keeper) age() {
	k.since = 0
	for c := range k.members {
		k.caches.Shrink(c.age())
	}
}

// free gives n bytes of a cache back.
func (k *keeper) free(n int64) {
	if k == nil || n == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.caches.Shrink(n)
}

// leave says that a cache has been closed.
func (k *keeper) leave(c aging) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.members, c)
}

// Of what sessions may take, 1/multiplexedShare is for multiplexed ones: a client needs one to begin at all, and regular ones, of which a client
// may make any number, stay for an hour.
const multiplexedShare = 4

// accountStep is more than an account takes beyond its need. Sessions are refused before that is taken, since caches cannot make room for it.
const accountStep = 256 << 10

// KeepSessions charges n bytes for sessions. Its error is RESOURCE_EXHAUSTED: sessions have taken all that they may.
func (r *Registry) KeepSessions(n int64, multiplexed bool) error {
	k := r.keeper
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	share := k.budget.SessionBytes() - accountStep
	if !multiplexed {
		share -= share / multiplexedShare
	}
	if k.sessions.Used()+n > share || !k.grow(k.sessions, n) {
		return k.sessions.Refusal(n)
	}
	return nil
}

// FreeSessions gives n bytes back that sessions were charged.
func (r *Registry) FreeSessions(n int64) {
	k := r.keeper
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions.Shrink(n)
}

// Kept is what prepared statements and sessions have taken of their budget.
func (r *Registry) Kept() memory.Usage {
	if r.cfg.Kept == nil {
		return memory.Usage{}
	}
	return r.cfg.Kept.Usage()
}
