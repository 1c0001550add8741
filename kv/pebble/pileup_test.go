package pebble

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestPileUp lets compactions fail. It checks that batches are refused before level 0 has so many sublevels that Pebble
// makes writers wait. A successful compaction within level 0 or of lower levels must not end the refusal. A compaction
// out of level 0 must end it, once few sublevels are left there.
func TestPileUp(t *testing.T) {
	d, err := openDisk("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	sublevels := 0
	d.sublevels = func() int { return sublevels }
	for _, step := range []struct {
		what      string
		end       func()
		sublevels int
		refused   [2]bool // whether an ordinary batch is refused, and whether one that may use the reserve is
	}{
		{"before the failure", func() {}, l0Stop, [2]bool{false, false}},
		{"few tables", func() { d.compactionEnded(syscall.EIO, fromTop) }, sublevelsToRefuse - 1, [2]bool{false, false}},
		{"many tables", func() {}, sublevelsToRefuse, [2]bool{true, false}},
		{"after a compaction that is not from the top", func() { d.compactionEnded(nil, move{3, 4}) }, sublevelsToRefuse, [2]bool{true, false}},
		{"too many tables", func() {}, sublevelsToRefuseAll, [2]bool{true, true}},
		{"after one from the top", func() { d.compactionEnded(nil, fromTop) }, sublevelsToRefuse, [2]bool{true, false}},
		{"few tables again", func() {}, sublevelsToRefuse - 1, [2]bool{false, false}},
		{"later", func() {}, sublevelsToRefuse, [2]bool{false, false}},
		{"a failure of lower levels", func() { d.compactionEnded(syscall.EIO, move{3, 4}) }, sublevelsToRefuse, [2]bool{true, false}},
		{"after a compaction of other levels", func() { d.compactionEnded(nil, move{4, 5}) }, sublevelsToRefuse, [2]bool{true, false}},
		{"after one of the same", func() { d.compactionEnded(nil, move{3, 4}) }, sublevelsToRefuse, [2]bool{false, false}},
		{"a failure from the top", func() { d.compactionEnded(syscall.EIO, fromTop) }, sublevelsToRefuse, [2]bool{true, false}},
		{"one of lower levels that is over soon", func() { d.compactionEnded(syscall.EIO, move{3, 4}); d.compactionEnded(nil, move{3, 4}) }, sublevelsToRefuse, [2]bool{true, false}},
		{"a full disk", func() { d.compactionEnded(syscall.ENOSPC, fromTop) }, sublevelsToRefuse, [2]bool{true, false}},
	} {
		step.end()
		sublevels = step.sublevels
		for i, useReserve := range []bool{false, true} {
			d.lookAtNext()
			err := d.admit(1, useReserve)
			if errors.Is(err, kv.ErrRefused) != step.refused[i] {
				t.Errorf("%s, use of the reserve %v: %v", step.what, useReserve, err)
			}
		}
	}
}

var fromTop = move{0, 6}

// TestStalledCompactions checks that the store fails if compactions from level 0 fail one after another while commits
// wait for such a compaction. It must not fail if commits wait for a flush, if no commit waits, or if compactions of
// lower levels fail.
func TestStalledCompactions(t *testing.T) {
	begins := func(reason string) func(l *pebble.EventListener) {
		return func(l *pebble.EventListener) { l.WriteStallBegin(pebble.WriteStallBeginInfo{Reason: reason}) }
	}
	flushed := func(l *pebble.EventListener) { l.FlushEnd(pebble.FlushInfo{}) }
	for _, c := range []struct {
		what   string
		before []func(l *pebble.EventListener)
		from   int
		fails  bool
	}{
		{"no stall", nil, 0, false},
		{"memory", []func(*pebble.EventListener){begins("memtable count limit reached")}, 0, false},
		{"memory, then tables", []func(*pebble.EventListener){begins("memtable count limit reached"), flushed}, 0, true},
		{"tables", []func(*pebble.EventListener){begins("L0 file count limit exceeded")}, 0, true},
		{"tables, lower levels fail", []func(*pebble.EventListener){begins("L0 file count limit exceeded")}, 3, false},
		{"over", []func(*pebble.EventListener){begins("L0 file count limit exceeded"), func(l *pebble.EventListener) { l.WriteStallEnd() }}, 0, false},
	} {
		mem := vfs.NewMem()
		d, err := openDisk("data", mem)
		if err != nil {
			t.Fatal(err)
		}
		g, w := guard("data", mem, d), work{}
		l := w.listener(g, messages{})
		end := func(from int, err error) {
			l.CompactionEnd(pebble.CompactionInfo{Err: err, Input: []pebble.LevelInfo{{Level: from}, {Level: 6}}, Output: pebble.LevelInfo{Level: 6}})
		}
		for range compactionAttempts {
			end(0, syscall.EIO)
		}
		for _, do := range c.before {
			do(&l)
		}
		for range compactionAttempts - 1 {
			end(c.from, syscall.EIO)
		}
		end(5, nil) // a successful compaction of lower levels does not end the stall
		if err := g.failure(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		end(c.from, syscall.EIO)
		if failed := g.failure() != nil; failed != c.fails {
			t.Errorf("%s: failed %v", c.what, failed)
		}
	}
}

// TestCompactionsHeld checks that each failure in a row delays compactions longer, and that a compaction that succeeds
// ends the delay.
func TestCompactionsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		d, err := openDisk("data", mem)
		if err != nil {
			t.Fatal(err)
		}
		g := guard("data", mem, d)
		for _, delay := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
			g.compactionEnded(syscall.EIO, fromTop)
			time.Sleep(delay*time.Millisecond - time.Nanosecond)
			if !g.compactionsHeld() {
				t.Errorf("compactions are held up for less than %d ms", delay)
			}
			time.Sleep(time.Nanosecond)
			if g.compactionsHeld() {
				t.Errorf("compactions are held up for more than %d ms", delay)
			}
		}
		g.compactionEnded(syscall.EIO, fromTop)
		g.compactionEnded(nil, fromTop)
		if g.compactionsHeld() {
			t.Error("compactions are held up after one that went well")
		}
	})
}

// TestDamagedInput checks that a compaction whose input is damaged is tried again, but not at once, even if it has not
// written anything.
func TestDamagedInput(t *testing.T) { synctest.Test(t, testDamagedInput) }

func testDamagedInput(t *testing.T) {
	fs := vfs.NewMem()
	make1(t, fs)
	table := last(t, fs, ".sst")
	text := []byte(read(t, fs, table))
	text[10] ^= 1
	write(t, fs, table, string(text))
	s := open(t, fs, "data")
	begun := time.Now()
	for i := range l0Compaction {
		put(t, s, "k\x00", fmt.Sprint(i))
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	const failures = 6
	for s.guard.compactionFailures.Load() < failures {
		time.Sleep(time.Millisecond)
	}
	var held time.Duration
	for n := int32(1); n < failures; n++ {
		held += retryDelay(n)
	}
	if took := time.Since(begun); took < held {
		t.Errorf("%d compactions failed within %v, want %v at least", failures, took, held)
	}
}

// TestSlowReserve checks that commits work while the reserve file is being written, and that the reserve can be given
// up during that time.
func TestSlowReserve(t *testing.T) {
	disk := disktest.New("data", 8<<20)
	begun, release := make(chan struct{}), make(chan struct{})
	disk.Fail(func(op errorfs.Op) error {
		switch {
		case op.Path != "data/"+reserveFile:
		case op.Kind == errorfs.OpFilePreallocate:
			return syscall.EOPNOTSUPP
		case op.Kind == errorfs.OpFileWrite:
			begun <- struct{}{}
			<-release
		}
		return nil
	})
	s := open(t, disk, "data")
	<-begun
	s.disk.lookAtNext()
	put(t, s, "k\x00", "v")
	if !s.disk.giveUpReserve(nil) {
		t.Error("the reserve that is being made cannot be given up")
	}
	if _, err := disk.Stat("data/" + reserveFile); err == nil {
		t.Error("the reserve that was given up is there")
	}
	disk.Fail(nil)
	close(release)
}

// TestRefusedBatch checks that the size of a batch that is too large for the disk does not count while other batches
// are checked. Otherwise the other batches would be refused, too.
func TestRefusedBatch(t *testing.T) {
	fs := &usageFS{FS: disktest.New("data", 64<<20)}
	d, err := openDisk("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	fs.look = func() {
		if n := d.onTheirWay(); n != 0 {
			t.Errorf("%d bytes are counted", n)
		}
	}
	if err := d.admit(60<<20, false); !errors.Is(err, kv.ErrRefused) {
		t.Error(err)
	}
	if err := d.admit(1<<10, false); err != nil {
		t.Error(err)
	}
}

// usageFS calls the function look when it is asked for the free space of the disk.
type usageFS struct {
	vfs.FS
	look func()
}

func (fs *usageFS) GetDiskUsage(dir string) (vfs.DiskUsage, error) {
	if fs.look != nil {
		fs.look()
	}
	return fs.FS.GetDiskUsage(dir)
}
