package database

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestHealth checks that Health reports that reads fail once the store is closed.
func TestHealth(t *testing.T) {
	b := open(t, vfs.NewMem())
	if h := b.Health(); h.Reads != nil || h.Writes != nil {
		t.Errorf("of an open store: %+v", h)
	}
	b.shut(b.store)
	if h := b.Health(); h.Reads == nil {
		t.Error("a closed store is healthy")
	}
}
