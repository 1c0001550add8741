package report

import "strings"

// Transactions are the server's statistics of a path's transactions. They match the transaction details in the study.
// Latencies are in microseconds.
type Transactions struct {
	Commits       int64    `json:"commits"`
	Latency       float64  `json:"avg_total_latency_us"`
	CommitLatency float64  `json:"avg_commit_latency_us"`
	ReadColumns   []string `json:"read_columns"`
}

// Add adds an interval. Its averages are in microseconds.
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

// existence reports whether the transactions looked up rows by their key, which appears as a read of _exists.
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
