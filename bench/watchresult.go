package bench

import (
	"fmt"
	"time"
)

// WatchResult is what one kind of watchers made of a load.
type WatchResult struct {
	Name      string     `json:"name"`    // of the load
	Setting   string     `json:"setting"` // what differs from the recommended way
	Load      Load       `json:"load"`
	Watching  Watching   `json:"watching"`
	Published *Published `json:"published,omitempty"`

	Seconds      float64 `json:"seconds"` // of the load
	Transactions int64   `json:"transactions"`
	Changes      int64   `json:"changes"`                       // committed, the backlog included
	Unsent       int64   `json:"unsent_transactions,omitempty"` // due while the load lasted and never sent
	Delivered    int64   `json:"delivered"`                     // of Changes
	Lost         int64   `json:"lost"`
	Duplicated   int64   `json:"duplicated"`
	Unwritten    int64   `json:"not_of_this_run,omitempty"` // delivered, but written by an earlier run or another program

	FromCommit Latency `json:"commit_to_callback_us"`
	// Tail is of the p99 of FromCommit, over parts of the load, in seconds; nil if nothing was delivered.
	Tail    *Spread `json:"commit_to_callback_p99_seconds,omitempty"`
	FromDue Latency `json:"due_to_callback_us"`
	// Histogram is of the latencies from commit to callback.
	Histogram []Bucket `json:"commit_to_callback_histogram"`
	// Lag is since the oldest undelivered change was due, and Behind how many were undelivered, when the load was over.
	Lag    float64 `json:"lag_at_end_seconds"`
	Behind int64   `json:"behind_at_end"`
	// Held says that the lag did not grow, that no more than unsentShare of the transactions were never sent, and that nothing was lost.
	Held bool `json:"held"`
	// Late is by how much the last transaction was sent late, in seconds.
	Late float64 `json:"writers_late_at_end_seconds"`
	// Reading is the share of the time in which a watcher was reading.
	Reading float64 `json:"reading_share"`
	// Cores are how many were busy while the load lasted; nil if the server runs elsewhere.
	Cores *Cores `json:"busy_cores,omitempty"`

	Backlog int     `json:"backlog,omitempty"`
	CatchUp CatchUp `json:"catch_up,omitzero"` // with a Backlog

	// Polls are what the server says; nil if it does not, or if there were none.
	Polls *PollStatistics `json:"polls,omitempty"`
	// Reads and ReadTime are the watchers' own counts: queries and their time from the request to the last row, in seconds, or records of a change stream.
	Reads    int64   `json:"reads"`
	ReadTime float64 `json:"avg_read_seconds"`

	tag     string
	watched time.Duration
}

// CatchUp is how long the watchers took until the oldest undelivered change was as young as the poll interval allows.
type CatchUp struct {
	Seconds float64 `json:"seconds"`
	Changes int64   `json:"changes"` // delivered until then, those of the load included
	Reads   int64   `json:"reads"`   // queries, or records of a change stream
	// Pace and ReadPace are of the changes and of the reads per second, over parts of that time; nil if it was not reached.
	Pace     *Spread `json:"changes_per_second,omitempty"`
	ReadPace *Spread `json:"reads_per_second,omitempty"`
}

// PerSecond is the changes delivered per second.
func (c CatchUp) PerSecond() float64 {
	if c.Seconds == 0 {
		return 0
	}
	return float64(c.Changes) / c.Seconds
}

// unsentShare is the share of transactions that may be due while the load lasts and never sent: those of its last moments.
const unsentShare = 0.01

// fill takes over what a side has seen.
func (r *WatchResult) fill(e watchExperiment, write *writer, s *side) {
	now := s.standing(time.Now())
	r.Seconds, r.Transactions, r.Changes, r.Unsent = e.lasts.Seconds(), now.transactions, now.committed, write.unsent
	r.Delivered, r.Lost, r.Duplicated, r.Unwritten = now.delivered, s.lost(), s.duplicated, s.unwritten
	r.FromCommit, r.FromDue = latencyOf(s.fromCommit), latencyOf(s.fromDue)
	r.Tail, r.Histogram = spreadOf(s.tails()), bucketsOf(s.fromCommit)
	changes, pace := s.paces()
	r.CatchUp.Pace, r.CatchUp.ReadPace = spreadOf(changes), spreadOf(pace)
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
func (r *WatchResult) heldText() string {
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
