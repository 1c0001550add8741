package pebble

import (
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMetrics checks that the metrics count written data first in the log and in memory, and after a flush in tables.
func TestMetrics(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	put(t, s, "k\x00", "1")
	before := s.Metrics()
	if before.LogWritten == 0 || before.MemTableSize == 0 || before.Tables != 0 {
		t.Errorf("before a flush: %+v", before)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	after := s.Metrics()
	if after.Flushes != before.Flushes+1 || after.Tables != 1 || after.TablesSize == 0 || after.FlushedSize == 0 || after.DiskSize < after.TablesSize {
		t.Errorf("after it: %+v", after)
	}
	get(t, s, "k\x00")
	get(t, s, "k\x00")
	if read := s.Metrics(); read.BlockCacheHits+read.BlockCacheMisses == 0 || read.ReadAmplification != 1 {
		t.Errorf("after reads: %+v", read)
	}
}

// TestCPUOfRunningJob checks that the CPU time of a job counts while the job runs, and does not shrink when the job
// ends.
func TestCPUOfRunningJob(t *testing.T) {
	var j jobs
	var stop atomic.Bool
	running, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		j.begin(1)
		close(running)
		for !stop.Load() { // the loop takes CPU time
		}
		j.end(1)
	}()
	<-running
	first := j.used()
	for j.used() <= first {
	}
	last := j.used()
	stop.Store(true)
	<-ended
	if used := j.used(); used < last {
		t.Errorf("%v when it has ended, %v before", used, last)
	}
}

// TestCPU checks that CPU time is measured for flushes and for compactions.
func TestCPU(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	for _, value := range []string{"1", "2"} {
		put(t, s, "k\x00", value)
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Compact(t.Context(), []byte("a"), []byte("z"), false); err != nil {
		t.Fatal(err)
	}
	if compactions, flushes := s.CPU(); compactions <= 0 || flushes <= 0 {
		t.Errorf("compactions used %v, flushes %v", compactions, flushes)
	}
}
