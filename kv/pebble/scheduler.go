package pebble

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// grantEvery is the interval at which the scheduler tries to start waiting compactions. It must try repeatedly, as
// Pebble's own scheduler does, because Pebble makes no call when more compactions are allowed to run.
const grantEvery = 100 * time.Millisecond

// scheduler lets as many compactions run as Pebble's own scheduler would, but starts none while the guard delays
// compactions (see compactionsHeld). Pebble 2.1.7 itself waits before it repeats a failed compaction of lower levels,
// but repeats one at once if all its inputs are in level 0.
//
// One goroutine starts the waiting compactions, so that no compaction starts after that goroutine has ended. The
// holder of mu never locks Pebble's mutex, because Pebble holds its mutex when it calls TrySchedule.
type scheduler struct {
	guard *guardedFS
	db    pebble.DBForCompaction

	look    chan struct{} // a message says that waiting compactions may be allowed to start
	closed  chan struct{}
	close   sync.Once
	granter sync.WaitGroup

	mu      sync.Mutex
	running int
}

var (
	_ pebble.CompactionScheduler   = (*scheduler)(nil)
	_ pebble.CompactionGrantHandle = (*scheduler)(nil)
)

func newScheduler(g *guardedFS) *scheduler {
	return &scheduler{guard: g, look: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) {
	s.db = db
	s.granter.Go(func() {
		tick := time.NewTicker(grantEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.look:
			case <-s.closed:
				return
			}
			s.grant()
		}
	})
}

// Unregister implements pebble.CompactionScheduler. It may be called several times, and without an earlier Register.
func (s *scheduler) Unregister() {
	s.close.Do(func() { close(s.closed) })
	s.granter.Wait()
}

// TrySchedule implements pebble.CompactionScheduler. Pebble calls it with its mutex locked.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.begin() {
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	select {
	case s.look <- struct{}{}:
	default: // a message to the goroutine is already waiting
	}
}

// grant starts waiting compactions as long as more are allowed to run.
func (s *scheduler) grant() {
	for s.hasRoom() {
		if waits, _ := s.db.GetWaitingCompaction(); !waits || !s.begin() {
			return
		}
		if !s.db.Schedule(s) {
			s.end()
			return
		}
	}
}

// hasRoom reports whether one more compaction may run.
func (s *scheduler) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayBegin()
}

func (s *scheduler) mayBegin() bool {
	return s.running < s.db.GetAllowedWithoutPermission() && !s.guard.compactionsHeld()
}

// begin counts one more running compaction and returns true, if one more is allowed to run; otherwise it returns
// false.
func (s *scheduler) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	may := s.mayBegin()
	if may {
		s.running++
	}
	return may
}

func (s *scheduler) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// Done implements pebble.CompactionGrantHandle.
func (s *scheduler) Done() {
	s.end()
	s.UpdateGetAllowedWithoutPermission()
}

// Started implements pebble.CompactionGrantHandle.
func (*scheduler) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (*scheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (*scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}
