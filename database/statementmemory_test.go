package database

import (
	"fmt"
	"testing"

	"github.com/crowfoot-db/crowfoot/database/cache"
)

// TestDropGivesStatementsBack checks that the memory of a dropped database's prepared statements is no longer charged.
func TestDropGivesStatementsBack(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	reserved := func() int64 { return b.Kept().Reserved }
	before := reserved()
	for i := range 100 {
		b.mustPrepare(fmt.Sprintf("SELECT K AS k%d FROM T", i))
	}
	if n := reserved() - before; n < 100*cache.EntryBytes {
		t.Errorf("100 statements are charged %d bytes", n)
	}
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	if n := reserved(); n != 0 {
		t.Errorf("%d bytes are taken after the drop", n)
	}
}
