package cache

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestCachesShareMemory checks three things. The caches of all databases together stay within the budget. An entry that
// is used again and again stays, even in the cache of a database with few requests. Closing a cache, as for a dropped
// database, gives back all of its memory.
func TestCachesShareMemory(t *testing.T) {
	budget := memory.NewBudget(4 << 20)
	k := NewBudget(budget)
	busy, quiet := Cache[int]{Budget: k}, Cache[int]{Budget: k}
	quiet.Put("used", 1)
	for i := range 10_000 {
		busy.Put(fmt.Sprintf("text %d", i), i)
		if _, ok := quiet.Get("used"); !ok {
			t.Fatalf("after %d texts of another database one that is used again and again is gone", i)
		}
		if reserved := budget.Usage().Reserved; reserved > 4<<20 {
			t.Fatalf("%d bytes are taken", reserved)
		}
	}
	if n := busy.Len(); n < 100 {
		t.Errorf("%d texts are kept", n)
	}
	busy.Close()
	busy.Put("late", 1)
	quiet.Close()
	if u := budget.Usage(); u.Reserved != 0 || len(k.members) != 0 {
		t.Errorf("%d bytes are taken by closed caches, and %d of them are known", u.Reserved, len(k.members))
	}
}

// TestSessionsMakeRoom checks that cached statements are dropped to free memory for sessions, and that sessions are
// refused once they have their share of the budget.
func TestSessionsMakeRoom(t *testing.T) {
	budget := memory.NewBudget(4 << 20)
	k := NewBudget(budget)
	texts := Cache[int]{Budget: k}
	for i := range 1000 {
		texts.Put(fmt.Sprint(i), i)
	}
	const size = 64 << 10
	sessions := 0
	var err error
	for ; err == nil; sessions++ {
		err = k.KeepSessions(size, false)
	}
	if want := 3 << 19 / size; !usererror.IsExhausted(err) || sessions < want-2 || sessions > want+2 {
		t.Errorf("there is room for %d sessions: %v", sessions, err)
	}
	if err := k.KeepSessions(size, true); err != nil {
		t.Errorf("a multiplexed session beside many regular ones: %v", err)
	}
	k.FreeSessions(8 * size)
	if err := k.KeepSessions(size, false); err != nil {
		t.Errorf("after others were deleted: %v", err)
	}
}

// TestLongKeys puts entries with long keys into a cache. The cache must stay within its limit of bytes, and keep an
// entry that is put again and again.
func TestLongKeys(t *testing.T) {
	var c Cache[int]
	for i := range 1000 {
		c.Put(strings.Repeat("x", 500_000)+fmt.Sprint(i), i)
		c.Put("SELECT 1", 1)
		if c.Len() > 4*maxBytes/(entryBytesPer*500_000) {
			t.Fatalf("%d long texts are kept", c.Len())
		}
	}
	if _, ok := c.Get("SELECT 1"); !ok {
		t.Error("what is in use is not kept")
	}
}
