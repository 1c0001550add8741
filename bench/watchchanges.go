package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// changes are those that a load has made, in the order of their numbers. It is safe for concurrent use.
type changes struct {
	began time.Time // of the load
	first int64     // number of the first change: those below were made before
	mu    sync.Mutex
	list  []change
	// transactions and committed count those that are acknowledged, and their changes.
	transactions, committed int64
}

type change struct {
	// due is when the change's transaction was due, since the load began; negative for a change that was to wait for the watchers.
	due       time.Duration
	committed bool // and acknowledged
}

// begin says when the load begins.
func (c *changes) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = now
}

// add numbers the changes of a transaction that is due, and returns the first number.
func (c *changes) add(due time.Duration, rows int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.first + int64(len(c.list))
	for range rows {
		c.list = append(c.list, change{due: due})
	}
	return number
}

// commit notes that a transaction is acknowledged.
func (c *changes) commit(number int64, rows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := number - c.first
	for i := range c.list[at : at+int64(rows)] {
		c.list[at+int64(i)].committed = true
	}
	c.transactions++
	c.committed += int64(rows)
}

// deliveries are what watchers of one kind have delivered of the changes. Its fields are guarded by the lock of the changes.
type deliveries struct {
	*changes
	// ahead is how far the server's clock is ahead of this program's.
	ahead time.Duration

	got        []bool // by change
	delivered  int64  // changes of this load, each once
	duplicated int64  // deliveries of changes that had been delivered
	unwritten  int64  // deliveries of what this load has not written: an earlier run did, or another program
	fromCommit *hdrhistogram.Histogram
	fromDue    *hdrhistogram.Histogram
	// parts are latencies from commit, by the part of the load in which the change was due.
	parts   [watchParts]*hdrhistogram.Histogram
	lasts   time.Duration // the load
	waiting int           // position of the oldest change that may be undelivered
}

// watchParts is into how many parts a load is divided, to see how much a figure differs from one to the next. Ten give an interval of 95%.
const watchParts = 10

func newDeliveries(c *changes, ahead, lasts time.Duration) *deliveries {
	d := &deliveries{changes: c, ahead: ahead, lasts: lasts, fromCommit: newHistogram(), fromDue: newHistogram()}
	for i := range d.parts {
		d.parts[i] = newHistogram()
	}
	return d
}

// add notes that a change was delivered. The latencies leave out what waited for the watchers.
func (d *deliveries) add(number int64, commit, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := number - d.first
	if at < 0 || at >= int64(len(d.list)) {
		d.unwritten++
		return
	}
	d.got = append(d.got, make([]bool, len(d.list)-len(d.got))...)
	if d.got[at] {
		d.duplicated++
		return
	}
	d.got[at] = true
	d.delivered++
	if due := d.list[at].due; due >= 0 {
		took := now.Sub(commit.Add(-d.ahead))
		record(d.fromCommit, took)
		record(d.parts[min(watchParts-1, int(watchParts*due/d.lasts))], took)
		record(d.fromDue, now.Sub(d.began.Add(due)))
	}
}

// record keeps a latency, in microseconds, within what a histogram holds.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(d, time.Microsecond), latencyMax).Microseconds()) // cannot fail: the value is within the range
}

// tails are the latencies from commit that 99% of the changes of each part of the load did not exceed, in seconds.
func (d *deliveries) tails() (list []float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, h := range d.parts {
		if h.TotalCount() > 0 {
			list = append(list, float64(h.ValueAtQuantile(99))/1e6)
		}
	}
	return list
}

// standing is how watchers stand at a moment.
type standing struct {
	transactions, committed, delivered int64
	lag                                time.Duration // since the oldest change that is not delivered was due
}

// behind is how many changes are committed and not delivered.
func (s standing) behind() int64 { return max(0, s.committed-s.delivered) }

func (d *deliveries) standing(now time.Time) standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.waiting < len(d.got) && d.got[d.waiting] {
		d.waiting++
	}
	s := standing{transactions: d.transactions, committed: d.committed, delivered: d.delivered}
	if d.waiting < len(d.list) {
		s.lag = max(0, now.Sub(d.began.Add(d.list[d.waiting].due)))
	}
	return s
}

// lost counts the changes that are committed and were not delivered.
func (d *deliveries) lost() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.list {
		if c.committed && (i >= len(d.got) || !d.got[i]) {
			n++
		}
	}
	return n
}
