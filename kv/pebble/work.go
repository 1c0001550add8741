package pebble

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// work measures the CPU time of Pebble's background jobs. Pebble runs each compaction and each flush on a goroutine of
// its own, and that goroutine calls the listener when the job begins and when it ends. Work that Pebble does on other
// goroutines, such as deleting files, is not measured.
type work struct {
	compactions, flushes jobs
	damage               damage
}

// listener returns an event listener that measures compactions and flushes, and reports failures to the guard and to
// the log. It has a DataCorruption function because without one Pebble would end the process at the first damaged
// block.
func (w *work) listener(g *guardedFS, m messages) pebble.EventListener {
	return pebble.EventListener{
		CompactionBegin: func(i pebble.CompactionInfo) {
			w.compactions.begin(i.JobID)
			g.compactions.begin(i)
		},
		TableCreated: g.compactions.made,
		CompactionEnd: func(i pebble.CompactionInfo) {
			w.compactions.end(i.JobID)
			g.compactions.end(i.JobID)
			if !errors.Is(i.Err, pebble.ErrCancelledCompaction) {
				g.compactionEnded(i.Err, moveOf(i))
			}
		},
		FlushBegin: func(i pebble.FlushInfo) { w.flushes.begin(i.JobID) },
		FlushEnd: func(i pebble.FlushInfo) {
			w.flushes.end(i.JobID)
			g.flushEnded(i.Err)
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) { g.stallBegan(reasonOf(i)) },
		WriteStallEnd:   g.stallEnded,
		BackgroundError: m.background,
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			g.compactions.cannotRead(g.PathBase(i.Path), i.Details)
			w.damage.found(i)
		},
	}
}

// reasonOf parses the reason in an event of Pebble. Pebble gives the reason only as a text (see maybeInduceWriteStall
// in Pebble's db.go).
func reasonOf(i pebble.WriteStallBeginInfo) stallReason {
	if strings.HasPrefix(i.Reason, "memtable") {
		return stallFlush
	}
	return stallCompaction
}

// move holds the topmost input level and the output level of a compaction. Level 0 is the top of the store. Only in
// level 0 can the key ranges of tables overlap.
type move struct{ from, to int }

func moveOf(i pebble.CompactionInfo) move {
	m := move{to: i.Output.Level}
	for n, l := range i.Input {
		if n == 0 || l.Level < m.from {
			m.from = l.Level
		}
	}
	return m
}

// jobs measures the jobs of one kind.
type jobs struct {
	mu      sync.Mutex
	ended   time.Duration // CPU time of the jobs that have ended
	running map[int]cpu.Segment
}

func (j *jobs) begin(id int) {
	s := cpu.BeginSegment()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running == nil {
		j.running = map[int]cpu.Segment{}
	}
	j.running[id] = s
}

func (j *jobs) end(id int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended += j.running[id].End()
	delete(j.running, id)
}

// used returns the CPU time of all jobs so far, running ones included.
func (j *jobs) used() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	used := j.ended
	for _, s := range j.running {
		used += s.SoFar()
	}
	return used
}

// CPU returns the CPU time that compactions and flushes have used since the store was opened.
func (s *Store) CPU() (compactions, flushes time.Duration) {
	return s.work.compactions.used(), s.work.flushes.used()
}
