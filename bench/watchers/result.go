package watchers

import (
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Result holds the results of one side in one experiment. A side is a set of watchers that watch in the same way.
type Result struct {
	Name      string     `json:"name"`    // name of the load
	Setting   string     `json:"setting"` // how the way of watching differs from the recommended one
	Load      Load       `json:"load"`
	Watching  Watching   `json:"watching"`
	Published *Published `json:"published,omitempty"`

	Seconds      float64 `json:"seconds"` // how long the load lasted
	Transactions int64   `json:"transactions"`
	Changes      int64   `json:"changes"`                       // number of committed changes, including the backlog
	Unsent       int64   `json:"unsent_transactions,omitempty"` // number of transactions that were due but never sent
	Delivered    int64   `json:"delivered"`                     // how many of Changes were delivered
	Lost         int64   `json:"lost"`
	Duplicated   int64   `json:"duplicated"`
	Unwritten    int64   `json:"not_of_this_run,omitempty"` // changes that were delivered, but written by an earlier run or by another program

	FromCommit report.Latency `json:"commit_to_callback_us"`
	// Tail says how much the p99 latency from commit to callback, in seconds, differs between the parts of the load. It
	// is nil if nothing was delivered.
	Tail    *report.Spread `json:"commit_to_callback_p99_seconds,omitempty"`
	FromDue report.Latency `json:"due_to_callback_us"`
	// Histogram shows the latencies from commit to callback.
	Histogram []Bucket `json:"commit_to_callback_histogram"`
	// Lag is the time in seconds since the oldest undelivered change was due. Behind is the number of undelivered
	// changes. Both are taken at the end of the load.
	Lag    float64 `json:"lag_at_end_seconds"`
	Behind int64   `json:"behind_at_end"`
	// Held is true if the watchers held the load: the lag did not grow, no change was lost, and at most unsentShare of
	// the transactions were never sent.
	Held bool `json:"held"`
	// Late is by how many seconds the last transaction was sent too late.
	Late float64 `json:"writers_late_at_end_seconds"`
	// Reading is the share of the time in which a watcher was reading, averaged over the watchers.
	Reading float64 `json:"reading_share"`
	// Cores holds the average numbers of busy cores during the load. It is nil if the server runs on another machine.
	Cores *Cores `json:"busy_cores,omitempty"`

	Backlog int     `json:"backlog,omitempty"`
	CatchUp CatchUp `json:"catch_up,omitzero"` // zero if Backlog is 0

	// Polls holds the server's statistics of the polls. It is nil if the server has none, or if there were no polls.
	Polls *PollStatistics `json:"polls,omitempty"`
	// Reads counts the watchers' reads. A read is a query, or a record of a change stream. ReadTime is the mean time
	// of a read in seconds; for a query, this is the time from the request to the last row.
	Reads    int64   `json:"reads"`
	ReadTime float64 `json:"avg_read_seconds"`

	tag     string
	watched time.Duration
}

// CatchUp describes how the watchers delivered a backlog. It covers the time until they had caught up: they had
// delivered the backlog, and the oldest undelivered change was as recent as the poll interval allows.
type CatchUp struct {
	Seconds float64 `json:"seconds"`
	// Changes is the number of changes that were delivered until the watchers had caught up, including changes of the
	// load. Reads is the number of the watchers' reads until then. A read is a query, or a record of a change stream.
	Changes int64 `json:"changes"`
	Reads   int64 `json:"reads"`
	// Pace and ReadPace are the spreads of the changes per second and of the reads per second, over parts of the time
	// until the watchers had caught up. They are nil if the watchers never caught up.
	Pace     *report.Spread `json:"changes_per_second,omitempty"`
	ReadPace *report.Spread `json:"reads_per_second,omitempty"`
}

// PerSecond returns the number of changes delivered per second.
func (c CatchUp) PerSecond() float64 {
	if c.Seconds == 0 {
		return 0
	}
	return float64(c.Changes) / c.Seconds
}

// unsentShare is the largest share of transactions that may be due during the load but never sent. Transactions that
// are due in the last moments of the load are often not sent.
const unsentShare = 0.01

// fill copies the results of a side into r.
func (r *Result) fill(e watchExperiment, write *writer, s *side) {
	now := s.standing(time.Now())
	r.Seconds, r.Transactions, r.Changes, r.Unsent = e.lasts.Seconds(), now.transactions, now.committed, write.unsent
	r.Delivered, r.Lost, r.Duplicated, r.Unwritten = now.delivered, s.lost(), s.duplicated, s.unwritten
	r.FromCommit, r.FromDue = report.LatencyOf(s.fromCommit), report.LatencyOf(s.fromDue)
	r.Tail, r.Histogram = report.SpreadOf(s.tails()), bucketsOf(s.fromCommit)
	changes, pace := s.paces()
	r.CatchUp.Pace, r.CatchUp.ReadPace = report.SpreadOf(changes), report.SpreadOf(pace)
	r.Lag, r.Behind = s.atEnd.lag.Seconds(), s.atEnd.behind()
	r.Held = r.Changes > 0 && float64(r.Unsent) <= unsentShare*float64(r.Transactions) && r.Lost == 0 && !s.grows(e.lasts)
	r.Late = write.late.Seconds()
	r.watched = time.Since(s.started)
	if r.Backlog == 0 {
		r.CatchUp = CatchUp{}
	}
	reads, took := s.reads()
	r.Reads, r.ReadTime = reads, (took / time.Duration(max(reads, 1))).Seconds()
	r.Reading = took.Seconds() / r.watched.Seconds() / float64(max(len(s.watchers), 1))
}

// heldText says whether the watchers held the load.
func (r *Result) heldText() string {
	switch {
	case r.Held:
		return "held"
	case float64(r.Unsent) > unsentShare*float64(r.Transactions):
		return fmt.Sprintf("%d transactions were due and never sent", r.Unsent)
	case r.Lost > 0:
		return fmt.Sprintf("%d changes lost", r.Lost)
	}
	return fmt.Sprintf("the lag grew to %.1f s", r.Lag)
}
