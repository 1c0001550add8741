package pebble

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// work is the CPU time of what Pebble does in the background. Pebble runs each compaction and each flush on a goroutine of its own, and calls
// the listener on it when it begins and when it ends. What it gives other goroutines to do, such as deleting files, is not measured.
type work struct {
	compactions, flushes atomic.Int64 // nanoseconds
	damage               damage
}

// listener measures compactions and flushes, and tells the guard and the log what failed. Without a DataCorruption function Pebble would end the process at the first damage.
func (w *work) listener(g *guardedFS, m messages) pebble.EventListener {
	var compacting, flushing jobs
	return pebble.EventListener{
		CompactionBegin: func(i pebble.CompactionInfo) { compacting.begin(i.JobID) },
		CompactionEnd: func(i pebble.CompactionInfo) {
			w.compactions.Add(int64(compacting.end(i.JobID)))
			if !errors.Is(i.Err, pebble.ErrCancelledCompaction) {
				g.compactionEnded(i.Err)
			}
		},
		FlushBegin: func(i pebble.FlushInfo) { flushing.begin(i.JobID) },
		FlushEnd: func(i pebble.FlushInfo) {
			w.flushes.Add(int64(flushing.end(i.JobID)))
			g.flushEnded(i.Err)
		},
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { g.stalled.Store(true) },
		WriteStallEnd:   func() { g.stalled.Store(false) },
		BackgroundError: m.background,
		DataCorruption:  w.damage.found,
	}
}

// jobs are the segments of the jobs that run. Pebble holds its mutex when it calls a listener, so they need none.
type jobs map[int]cpu.Segment

func (j *jobs) begin(id int) {
	if *j == nil {
		*j = jobs{}
	}
	(*j)[id] = cpu.BeginSegment()
}

func (j *jobs) end(id int) time.Duration {
	s := (*j)[id]
	delete(*j, id)
	return s.End()
}

// CPU is the CPU time that compactions and flushes have used since the store was opened.
func (s *Store) CPU() (compactions, flushes time.Duration) {
	return time.Duration(s.work.compactions.Load()), time.Duration(s.work.flushes.Load())
}
