package watchers

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// changes holds the changes that a load has made, in the order of their numbers. Its methods may be called
// concurrently.
type changes struct {
	began time.Time // when the load began
	first int64     // number of the first change of this load; lower numbers belong to earlier runs
	mu    sync.Mutex
	list  []change
	// transactions and committed count the acknowledged transactions and the changes in them.
	transactions, committed int64
}

type change struct {
	// due is when the change's transaction was due, as the time since the beginning of the load. It is negative for
	// changes of the backlog.
	due       time.Duration
	committed bool // true if the commit was acknowledged
}

// begin sets the beginning of the load.
func (c *changes) begin(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = now
}

// add adds the changes of a transaction with the given number of rows, and returns the number of the first change.
func (c *changes) add(due time.Duration, rows int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.first + int64(len(c.list))
	for range rows {
		c.list = append(c.list, change{due: due})
	}
	return number
}

// commit marks changes as committed. number is the number of the first change, and rows is how many changes there are.
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

// deliveries records which changes the watchers of one side have delivered. A side is a set of watchers that watch in
// the same way. The mutex of the embedded changes guards all fields.
type deliveries struct {
	*changes
	// ahead is how far the server's clock is ahead of this program's.
	ahead time.Duration

	got        []bool // true for each delivered change, by its index in changes.list, which may be longer
	delivered  int64  // number of delivered changes of this load, each counted once
	duplicated int64  // number of repeated deliveries of a change
	unwritten  int64  // number of deliveries of changes that an earlier run or another program has written
	fromCommit *hdrhistogram.Histogram
	fromDue    *hdrhistogram.Histogram
	// parts holds histograms of the latency from commit to callback, one for each part of the load. A change counts
	// for the part in which it was due.
	parts   [watchParts]*hdrhistogram.Histogram
	lasts   time.Duration // duration of the load
	waiting int           // index in changes.list of the oldest change that may be undelivered
}

// watchParts is the number of equal parts into which a load is divided. The spread over the parts shows how much a
// figure varies during the load. Ten parts are enough for an interval with a confidence of 95%.
const watchParts = 10

func newDeliveries(c *changes, ahead, lasts time.Duration) *deliveries {
	d := &deliveries{changes: c, ahead: ahead, lasts: lasts, fromCommit: report.NewHistogram(), fromDue: report.NewHistogram()}
	for i := range d.parts {
		d.parts[i] = report.NewHistogram()
	}
	return d
}

// add records the delivery of a change. Changes of the backlog are not included in the latencies.
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

// record adds a latency to the histogram, which counts in microseconds. A latency outside of the histogram's range is
// replaced by the nearest one in it.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(d, time.Microsecond), report.MaxLatency).Microseconds()) // cannot fail: the value is within the range
}

// tails returns, for each part of the load, the p99 of the latency from commit to callback, in seconds.
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

// standing holds the progress of one side, a set of watchers, at a moment.
type standing struct {
	transactions, committed, delivered int64
	lag                                time.Duration // time since the oldest undelivered change was due
}

// behind returns the number of changes that are committed but not delivered.
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

// lost returns the number of changes that were committed but not delivered.
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
