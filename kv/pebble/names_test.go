package pebble

import (
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestNamesAfterFailure lets syncs of the directory fail. It checks that meanwhile no file is removed and no sync of a
// new file succeeds. When syncs of the directory succeed again, the names made before must become durable first.
func TestNamesAfterFailure(t *testing.T) {
	disk := disktest.New("data", 1<<20)
	if err := makeDir("data", disk); err != nil {
		t.Fatal(err)
	}
	fs := keepNames(disk)
	writeAt(t, fs, "data/old", "")
	if err := syncDir("data", fs); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create("data/new", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	disk.Fail(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && op.Path == "data" {
			return syscall.EIO
		}
		return nil
	})
	for range 2 {
		if f.Sync() == nil || syncDir("data", fs) == nil || fs.Remove("data/old") == nil {
			t.Fatal("an operation that needs durable names went well")
		}
	}
	disk.Fail(nil)
	if err := fs.Remove("data/old"); err != nil {
		t.Fatal(err)
	}
	after := disk.Files.CrashClone(vfs.CrashCloneCfg{})
	if _, err := after.Stat("data/new"); err != nil {
		t.Errorf("a name went before one that was made earlier was durable: %v", err)
	}
}
