package database

import (
	"sync/atomic"
	"testing"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestStartWaitsForRoom makes the store refuse the first batches of a start. The start must wait until the store
// accepts batches again. On a full disk, a real store does so once it has deleted the log that a crash has left.
func TestStartWaitsForRoom(t *testing.T) {
	a := newAged(t)
	before := a.Identity().Start
	store := &disktest.Refusing{Store: a.store}
	var asked atomic.Int64
	store.When(func() bool { return asked.Add(1) <= 2 })
	a.reopenOn(store)
	if after := a.Identity().Start; after != before+1 || asked.Load() < 3 {
		t.Errorf("start %d after start %d, %d batches", after, before, asked.Load())
	}
}
