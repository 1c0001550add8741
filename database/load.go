package database

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/stats"
)

// loads is what the splits of a database have had to do, by the minute. It is fed by executions that are
// sampled, which stand for all (cpu.Meter.Weight). What a minute has when the process ends is lost.
type loads struct {
	mu      sync.Mutex
	minutes [2]minuteLoads // the open one, and the one before
	key     []byte         // room
}

// minuteLoads are the loads of one minute, by the bounds of the split, which change when splits do.
type minuteLoads struct {
	minute int64 // since 1970
	splits map[string]*splitLoad
}

// splitLoad is what one split had to do.
type splitLoad struct {
	start, limit []byte
	cpu          time.Duration
	scans        time.Duration // of it, by executions that went over largeScan rows or more
	vote                       // over its rows, by CPU time
}

const (
	// warmSplit is the score from which on a split is looked at closely:
	// https://cloud.google.com/spanner/docs/introspection/hot-split-statistics.
	warmSplit = 50
	// largeScan is how many rows of a split make a read of it a large scan.
	largeScan = 1000
	// nearlyAll is what share of a split's load one cause must have to be the reason.
	nearlyAll = 0.8
)

// Charge has the splits of a visit pay for the CPU time of its execution, in proportion to the rows that were read or written in
// each, as often as there are executions that it stands for. Like all statistics it counts in the minute in which it ends.
func (d *Database) Charge(v *Visit, cpu time.Duration, at time.Time) {
	var rows int64
	for i := range v.calls {
		rows += v.calls[i].work()
	}
	each := float64(cpu) * float64(v.weight) / float64(rows)
	d.loads.mu.Lock()
	defer d.loads.mu.Unlock()
	m := d.loads.at(minuteOf(at))
	for i := range v.calls {
		c := &v.calls[i]
		l, share := d.loads.of(m, v.splits.start(c.split), v.splits.limit(c.split)), time.Duration(each*float64(c.work()))
		l.cpu += share
		if c.scanned >= largeScan {
			l.scans += share
		}
		l.vote.add(c.row, int64(each*float64(c.lead)))
	}
}

// work is what a call counts for: to find nothing is work too.
func (c *call) work() int64 { return max(c.rows, 1) }

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// at is the loads of a minute. Of those before the last two nobody will ask.
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

// take gives the loads of a minute away, in order of the keys.
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

// splitLoads are the splits that had something to do in the minute that ended at end.
func (d *Database) splitLoads(end time.Time) []stats.SplitLoad {
	var list []stats.SplitLoad
	for _, l := range d.loads.take(minuteOf(end) - 1) {
		score := l.score()
		if score == 0 {
			continue
		}
		s := stats.SplitLoad{Tables: d.affected(l.start, l.limit), Score: score, Unsplittable: l.unsplittable()}
		s.Start, s.Limit = d.boundTexts(l.start, l.limit)
		list = append(list, s)
	}
	return list
}

// score is the CPU_USAGE_SCORE of the minute: what share of one core the split has used, in percent. A split is the least that
// a server of its own could be given, and a core is taken for what one such server can do for it: 50 and more is
// warm, 100 hot, as the service has it, which measures how much of the load is held up by what the server has
// (https://cloud.google.com/spanner/docs/introspection/hot-split-statistics).
func (l *splitLoad) score() int64 {
	return min(int64((l.cpu*100+time.Minute/2)/time.Minute), 100)
}

// unsplittable are the UNSPLITTABLE_REASONS that can be known here, of a split that is warm. MOVING_HOT_SPOT and
// UNISOLATABLE_HOT_ROW are said by a service that has tried to split; nobody has tried here.
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

// vote finds the row that most of a load goes to, if there is one, by majority vote
// (Boyer and Moore, MJRTY: A Fast Majority Vote Algorithm): a row with a share s of all has a lead of 2s-1 of all at least, and
// a row with a lead has at least that share.
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
