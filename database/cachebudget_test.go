package database

import (
	"fmt"
	"testing"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestCachesShareMemory checks that the caches of all databases together stay within their budget. Entries that are
// used again and again stay, even in a database with few requests. A dropped database gives all of its memory back.
func TestCachesShareMemory(t *testing.T) {
	budget := memory.NewBudget(4 << 20)
	k := newCacheBudget(budget)
	busy, quiet := cache[int]{memory: k}, cache[int]{memory: k}
	quiet.put("used", 1)
	for i := range 10_000 {
		busy.put(fmt.Sprintf("text %d", i), i)
		if _, ok := quiet.get("used"); !ok {
			t.Fatalf("after %d texts of another database one that is used again and again is gone", i)
		}
		if reserved := budget.Usage().Reserved; reserved > 4<<20 {
			t.Fatalf("%d bytes are taken", reserved)
		}
	}
	if n := len(busy.young) + len(busy.old); n < 100 {
		t.Errorf("%d texts are kept", n)
	}
	busy.close()
	busy.put("late", 1)
	quiet.close()
	if u := budget.Usage(); u.Reserved != 0 || len(k.members) != 0 {
		t.Errorf("%d bytes are taken by closed caches, and %d of them are known", u.Reserved, len(k.members))
	}
}

// TestSessionsMakeRoom checks that sessions evict prepared statements, up to half of the budget.
func TestSessionsMakeRoom(t *testing.T) {
	budget := memory.NewBudget(4 << 20)
	r := &Registry{cfg: Config{Kept: budget}, cacheBudget: newCacheBudget(budget)}
	texts := cache[int]{memory: r.cacheBudget}
	for i := range 1000 {
		texts.put(fmt.Sprint(i), i)
	}
	const size = 64 << 10
	sessions := 0
	var err error
	for ; err == nil; sessions++ {
		err = r.KeepSessions(size, false)
	}
	if want := 3 << 19 / size; !usererror.IsExhausted(err) || sessions < want-2 || sessions > want+2 {
		t.Errorf("there is room for %d sessions: %v", sessions, err)
	}
	if err := r.KeepSessions(size, true); err != nil {
		t.Errorf("a multiplexed session beside many regular ones: %v", err)
	}
	r.FreeSessions(8 * size)
	if err := r.KeepSessions(size, false); err != nil {
		t.Errorf("after others were deleted: %v", err)
	}
}

// TestDropGivesStatementsBack checks that the statements of a dropped database are no longer charged.
func TestDropGivesStatementsBack(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	reserved := func() int64 { return b.Kept().Reserved }
	before := reserved()
	for i := range 100 {
		b.mustPrepare(fmt.Sprintf("SELECT K AS k%d FROM T", i))
	}
	if n := reserved() - before; n < 100*entryBytes {
		t.Errorf("100 statements are charged %d bytes", n)
	}
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	if n := reserved(); n != 0 {
		t.Errorf("%d bytes are taken after the drop", n)
	}
}
