package split

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/stats"
)

// loads holds the load of each split of a database by the minute. The load is the CPU time that executions used in the
// split. Only sampled executions are measured; each represents many others (cpu.Meter.Weight). The loads of the minute
// in which the process ends are lost.
type loads struct {
	mu      sync.Mutex
	minutes [2]minuteLoads // the newest minute, and the minute before it
	key     []byte         // buffer for building a key of minuteLoads.splits
}

// minuteLoads holds the loads of one minute. The key of a split in splits is made of the split's two bounds, since the
// number of a split may change within the minute.
type minuteLoads struct {
	minute int64 // minutes since 1970
	splits map[string]*splitLoad
}

// splitLoad is the load of one split.
type splitLoad struct {
	start, limit []byte
	cpu          time.Duration
	scans        time.Duration // the part of the CPU time that executions with a large scan in the split have used
	vote                       // finds the row that used most of the CPU time
}

const (
	// warmSplit is the lowest score of a split for which unsplittable returns reasons:
	// https://cloud.google.com/spanner/docs/introspection/hot-split-statistics.
	warmSplit = 50
	// largeScan is the least number of rows that a scan must read in a split to count as a large scan.
	largeScan = 1000
	// nearlyAll is a share of a split's load, from 0 to 1. unsplittable gives one row, or large scans, as a reason if
	// they cause at least this share.
	nearlyAll = 0.8
)

// Charge adds the CPU time of a tracked execution to the loads of the splits that it used, in proportion to the rows
// that it read or wrote in each. It multiplies the time by the weight of t, which is the number of executions that this
// sampled one represents. The parameter at says when the execution ended. As in all statistics, the whole CPU time
// counts in the minute of the end.
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

// work returns the number of rows by which Charge weighs the call: its rows, or 1 if it found none.
func (c *call) work() int64 { return max(c.rows, 1) }

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// at returns the loads of a minute. Only the newest minute and the one before it are kept. For an earlier minute it
// returns the loads of the newest one.
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

// of returns the load of the split from start to limit in a minute. If there is none yet, it adds an empty one.
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

// drain removes the loads of a minute and returns them in order of the splits' keys.
func (l *loads) drain(minute int64) (list []*splitLoad) {
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

// Loads returns the rows of SPLIT_STATS for the minute before end: the splits whose score is above 0, in order of their
// keys. It removes the loads of that minute.
func (m *Manager) Loads(end time.Time) []stats.SplitLoad {
	var list []stats.SplitLoad
	for _, l := range m.loads.drain(minuteOf(end) - 1) {
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

// score returns the CPU_USAGE_SCORE of the minute: the share of one core that the split has used, in percent. Cloud
// Spanner compares the load of a split with the capacity of the server that holds it; Crowfoot compares it with one
// core. In both, a split with a score of 50 or more is warm, and one with 100 is hot
// (https://cloud.google.com/spanner/docs/introspection/hot-split-statistics).
func (l *splitLoad) score() int64 {
	return min(int64((l.cpu*100+time.Minute/2)/time.Minute), 100)
}

// unsplittable returns the UNSPLITTABLE_REASONS of a split, or nil if the split is not warm. It never returns
// MOVING_HOT_SPOT or UNISOLATABLE_HOT_ROW: these come from attempts to split a hot range, which Crowfoot does not make.
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

// vote finds the row that causes most of a load, if there is such a row, by majority vote (Boyer and Moore, MJRTY: A
// Fast Majority Vote Algorithm). One row leads at a time: votes for it increase its lead, and votes for other rows
// decrease the lead, until another row leads. A row that causes a share s of the load leads at the end, and its lead is
// at least a share 2s-1 of the load, if s is above one half. Conversely, a row whose lead at the end is a share l of
// the load causes at least a share l of the load.
type vote struct {
	row  uint64 // hash of the row's key
	lead int64
}

// add adds n votes for a row. To add the result of another vote to v, pass the row and the lead of that vote.
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
