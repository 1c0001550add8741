package report

import "strings"

// Transactions holds the server's statistics of a path's transactions. The published study of writes shows the same
// values, as transaction details. Latencies are in microseconds.
type Transactions struct {
	Commits       int64    `json:"commits"`
	Latency       float64  `json:"avg_total_latency_us"`
	CommitLatency float64  `json:"avg_commit_latency_us"`
	ReadColumns   []string `json:"read_columns"`
}

// Add adds the statistics of an interval. total and commit are average latencies in microseconds.
func (t *Transactions) Add(commits int64, total, commit float64, columns []string) {
	all := float64(t.Commits + commits)
	if all == 0 {
		return
	}
	before, added := float64(t.Commits)/all, float64(commits)/all
	t.Latency, t.CommitLatency = t.Latency*before+total*added, t.CommitLatency*before+commit*added
	t.Commits += commits
	t.ReadColumns = columns
}

// existence says as a text whether the transactions looked up rows by their key. The statistics show such a look-up as
// a read of the column _exists.
func (t *Transactions) existence() string {
	if t == nil {
		return notKnown
	}
	for _, c := range t.ReadColumns {
		if strings.HasSuffix(c, "._exists") {
			return "yes"
		}
	}
	return "no"
}
