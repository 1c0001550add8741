package split

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/stats"
)

// loads are the loads of the splits of a database, by the minute. They are fed by executions whose CPU time is measured, each of
// which stands for many (cpu.Meter.Weight). The loads of the minute in which the process ends are lost.
type loads struct {
	mu      sync.Mutex
	minutes [2]minuteLoads // the open one, and the one before
	key     []byte         // a buffer for the keys of minuteLoads.splits
}

// minuteLoads are the loads of one minute, by the bounds of the split: splits may change within the minute.
type minuteLoads struct {
	minute int64 // since 1970
	splits map[string]*splitLoad
}

// splitLoad is the load of one split.
type splitLoad struct {
	start, limit []byte
	cpu          time.Duration
	scans        time.Duration // the part of cpu used by executions that scanned largeScan rows or more
	vote                       // for the hottest row, by CPU time
}

const (
	// warmSplit is the score from which on a split is looked at closely:
	// https://cloud.google.com/spanner/docs/introspection/hot-split-statistics.
	warmSplit = 50
	// largeScan is from how many rows of a split on a scan of it is large.
	largeScan = 1000
	// nearlyAll is what share of a split's load one cause must have to be the reason.
	nearlyAll = 0.8
)

// Charge adds the CPU time of a tracked execution to the loads of the splits that it went to, in proportion to the rows that it
// read or wrote in each, times the number of executions that it stands for. As in all statistics it counts in the minute in which it ends.
func (m *Manager) Charge(t *Tracker, cpu time.Duration, at time.Time) {
	var rows int64
	for i := range t.calls {
		rows += t.calls[i].work()
	}
	each := float64(cpu) * float64(t.weight) / float64(rows)
	m.loads.mu.Lock()
	defer m.loads.mu.Unlock()
	minute := m.loads.at(minuteOf(at))
	for i := range t.calls {
		c := &t.calls[i]
		l, share := m.loads.of(minute, t.splits.start(c.split), t.splits.limit(c.split)), time.Duration(each*float64(c.work()))
		l.cpu += share
		if c.scanned >= largeScan {
			l.scans += share
		}
		l.vote.add(c.row, int64(each*float64(c.lead)))
	}
}

// work is the call's share of its execution. A call that found no rows counts as one that found one.
func (c *call) work() int64 { return max(c.rows, 1) }

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// at is the loads of a minute. Only the last two minutes are kept; a charge for an earlier one goes to the open one.
func (l *loads) at(minute int64) *minuteLoads {
	if minute > l.minutes[0].minute {
		l.minutes[1] = l.minutes[0]
		l.minutes[0] = minuteLoads{minute: minute, splits: map[string]*splitLoad{}}
	}
	if minute == l.minutes[1].minute {
		return &l.minutes[1]
	}
	return &l.minutes[0]
}

// of is the load of a split in a minute.
func (l *loads) of(m *minuteLoads, start, limit []byte) *splitLoad {
	l.key = binary.AppendUvarint(l.key[:0], uint64(len(start)))
	l.key = append(append(l.key, start...), limit...)
	load := m.splits[string(l.key)]
	if load == nil {
		load = &splitLoad{start: start, limit: limit}
		m.splits[string(l.key)] = load
	}
	return load
}

// take removes and returns the loads of a minute, in order of the keys.
func (l *loads) take(minute int64) (list []*splitLoad) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.minutes {
		if m := &l.minutes[i]; m.minute == minute {
			for _, s := range m.splits {
				list = append(list, s)
			}
			clear(m.splits)
		}
	}
	slices.SortFunc(list, func(a, b *splitLoad) int { return bytes.Compare(a.start, b.start) })
	return list
}

// Loads are the splits that had a load in the minute that ended at end, as SPLIT_STATS shows them, in order of the keys.
func (m *Manager) Loads(end time.Time) []stats.SplitLoad {
	var list []stats.SplitLoad
	for _, l := range m.loads.take(minuteOf(end) - 1) {
		score := l.score()
		if score == 0 {
			continue
		}
		s := stats.SplitLoad{Tables: m.affected(l.start, l.limit), Score: score, Unsplittable: l.unsplittable()}
		s.Start, s.Limit = m.boundTexts(l.start, l.limit)
		list = append(list, s)
	}
	return list
}

// score is the CPU_USAGE_SCORE of the minute: the share of one core that the split has used, in percent. The service's score
// compares the load of a split with what the server that holds it can do; here a core stands for that server. As there,
// 50 and more is warm, 100 hot
// (https://cloud.google.com/spanner/docs/introspection/hot-split-statistics).
func (l *splitLoad) score() int64 {
	return min(int64((l.cpu*100+time.Minute/2)/time.Minute), 100)
}

// unsplittable are those UNSPLITTABLE_REASONS of a warm split that can be known here. MOVING_HOT_SPOT and
// UNISOLATABLE_HOT_ROW come from attempts to split, which Crowfoot does not make.
func (l *splitLoad) unsplittable() (reasons []string) {
	if l.score() < warmSplit {
		return nil
	}
	if float64(l.lead) >= nearlyAll*float64(l.cpu) {
		reasons = append(reasons, "HOT_ROW")
	}
	if float64(l.scans) >= nearlyAll*float64(l.cpu) {
		reasons = append(reasons, "LARGE_SCAN_HOT_SPOT")
	}
	return reasons
}

// vote finds the row that takes most of a load, if there is one, by majority vote
// (Boyer and Moore, MJRTY: A Fast Majority Vote Algorithm): a row with a share s of the load ends with a lead of at least 2s-1 of
// it, and a row that ends with a lead has at least that share.
type vote struct {
	row  uint64 // hash of its key
	lead int64
}

// add adds votes, or the outcome of another vote.
func (v *vote) add(row uint64, n int64) {
	switch {
	case v.row == row:
		v.lead += n
	case n > v.lead:
		v.row, v.lead = row, n-v.lead
	default:
		v.lead -= n
	}
}
