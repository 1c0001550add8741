package pebble_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestOpenNotAllowed opens a directory that cannot be written. It checks that the error tells the operator what is
// wrong.
func TestOpenNotAllowed(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EROFS} {
		disk := disktest.New("data", 8<<20)
		disk.Fail(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpLock {
				return &os.PathError{Op: "open", Path: op.Path, Err: errno}
			}
			return nil
		})
		_, err := pebble.Open("data", disk)
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), "data directory data must belong to the user who starts the server") {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

// TestOpenToReadOnly checks that OpenToRead can read a directory on a read-only file system.
func TestOpenToReadOnly(t *testing.T) {
	disk := disktest.New("data", 8<<20)
	store, err := pebble.Open("data", disk)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	disk.Fail(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose {
			return &os.PathError{Op: fmt.Sprint(op.Kind), Path: op.Path, Err: syscall.EROFS}
		}
		return nil
	})
	if store, err = pebble.OpenToRead("data", disk); err != nil {
		t.Fatal(err)
	}
	damaged := func(file string, err error) { t.Errorf("%s: %v", file, err) }
	if err := store.VerifyTables(t.Context(), func(string, uint64) {}, damaged); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenFull opens a store on a disk without space even for the log. It checks that the error names the full disk as
// the reason.
func TestOpenFull(t *testing.T) {
	disk := disktest.New("data", 8<<20)
	store, err := pebble.Open("data", disk)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Close(), disk.Remove("data/RESERVE")); err != nil {
		t.Fatal(err)
	}
	disk.Fill()
	if _, err = pebble.Open("data", disk); err == nil || !strings.Contains(err.Error(), "its disk is full (0 MiB are free), make room on it") {
		t.Fatal(err)
	}
	disk.Empty()
	if store, err = pebble.Open("data", disk); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUseReserve checks that a batch with UseReserve is accepted when the space left is only for such batches, and an
// ordinary batch is refused. Nothing of a refused batch may be stored.
func TestUseReserve(t *testing.T) {
	disk := disktest.New("data", 8<<20)
	store, err := pebble.Open("data", disk)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	commit := func(key string, reserve bool) error {
		b := store.NewBatch()
		defer b.Close()
		if reserve {
			b.UseReserve()
		}
		if err := b.Put([]byte(key), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		return b.Commit()
	}
	other, err := disk.Create("data/other", "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for disk.Free() >= 1<<20 {
		if _, err := other.Write(make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if store.Writable() == nil {
		t.Error("the store says that it takes ordinary batches")
	}
	if err := commit("reserve", true); err != nil {
		t.Error(err)
	}
	// The store accepts a limited number of bytes between two readings of the free space. The loop uses them up.
	for commit("ordinary", false) == nil {
	}
	if err := commit("refused", false); !errors.Is(err, kv.ErrRefused) {
		t.Errorf("an ordinary batch: %v", err)
	}
	if m := store.Metrics(); m.Writable || m.RefusedBatches != 2 || m.FreeSize != int64(disk.Free()) {
		t.Errorf("metrics: %t, %d batches refused, %d bytes free of %d", m.Writable, m.RefusedBatches, m.FreeSize, disk.Free())
	}
	it, err := store.NewIter([]byte("refused"), []byte("refusee"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if it.First() {
		t.Error("a refused batch has written something")
	}
}
