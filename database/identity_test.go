package database

import (
	"sync/atomic"
	"testing"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestStartWaitsForRoom checks that a start waits while the store refuses its batches, and succeeds once the store
// accepts them. A real store refuses batches if the disk is full at the start, and accepts them once it has deleted the
// log files that a crash has left.
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
