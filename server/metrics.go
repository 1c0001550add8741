package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/version"
)

// samples passes each metric of the server and its databases to the function add, except the metrics of API methods.
func (s *Server) samples(add func(metrics.Sample)) {
	build := version.Get()
	add(metrics.Sample{Name: "build_info", Help: "1, with the version and the commit that run.", Kind: prometheus.GaugeValue, Value: 1,
		Labels: []string{"version", build.Version, "commit", build.Commit, "go", build.Go}})
	for _, t := range s.account.Tasks() {
		if used := t.Used(); used > 0 {
			add(metrics.Sample{Name: "background_cpu_seconds_total", Help: "CPU time of work in the background, by task.",
				Kind: prometheus.CounterValue, Value: used.Seconds(), Labels: []string{"task", t.Name}})
		}
	}
	sampleMemory(add, s.cfg.Memory.Usage(), s.registry.Kept())
	for name, c := range s.counts {
		of := []string{"listener", name}
		add(metrics.Sample{Name: "connections", Help: "Connections that are open.", Kind: prometheus.GaugeValue, Value: float64(c.Open()), Labels: of})
		add(metrics.Sample{Name: "connections_refused_total", Help: "Connections that were closed because the listener was full.",
			Kind: prometheus.CounterValue, Value: float64(c.Refused()), Labels: of})
	}
	for kind, n := range s.data.sessions.countByKind() {
		add(metrics.Sample{Name: "sessions", Help: "Sessions that are open.", Kind: prometheus.GaugeValue, Value: float64(n), Labels: []string{"kind", kind}})
	}
	for _, d := range s.registry.AllDatabases() {
		sampleLocks(add, d.Name(), d.Transactions().Metrics())
		sampleCopies(add, d.Name(), d.ColumnarPolicies())
	}
}

// sampleMemory adds the metrics of memory budgets. u is the use of the budget that requests share; kept is the use of
// the budget of prepared statements and sessions.
func sampleMemory(add func(metrics.Sample), u, kept memory.Usage) {
	gauge := func(name, help string, v float64) {
		add(metrics.Sample{Name: "memory_" + name, Help: help, Kind: prometheus.GaugeValue, Value: v})
	}
	gauge("budget_bytes", "Memory that requests may take together.", float64(u.Limit))
	gauge("taken_bytes", "Memory that requests have taken of the budget.", float64(u.Reserved))
	gauge("waiting", "Requests that wait for room in the budget.", float64(u.Waiting))
	gauge("kept_budget_bytes", "Memory that prepared statements and sessions may take together.", float64(kept.Limit))
	gauge("kept_bytes", "Memory that prepared statements and sessions have taken.", float64(kept.Reserved))
	for kind, n := range u.Refused {
		n += kept.Refused[kind]
		add(metrics.Sample{Name: "memory_refused_total", Help: "Times that the budget refused memory, at once or after a wait, by what it was for.", Kind: prometheus.CounterValue,
			Value: float64(n), Labels: []string{"kind", memory.Kind(kind).String()}})
	}
}

// sampleLocks adds the metrics of a database's locks and aborted transactions.
func sampleLocks(add func(metrics.Sample), database string, m txn.Metrics) {
	of := []string{"database", database}
	add(metrics.Sample{Name: "locks", Help: "Locks that transactions hold.", Kind: prometheus.GaugeValue, Value: float64(m.Locks), Labels: of})
	add(metrics.Sample{Name: "lock_waiters", Help: "Requests for a lock that wait.", Kind: prometheus.GaugeValue, Value: float64(m.Waiting), Labels: of})
	add(metrics.Sample{Name: "lock_waits_total", Help: "Requests for a lock that have waited.", Kind: prometheus.CounterValue, Value: float64(m.LockWaits), Labels: of})
	add(metrics.Sample{Name: "lock_wait_seconds_total", Help: "Time that requests for a lock have waited.", Kind: prometheus.CounterValue, Value: m.LockWaitTime.Seconds(), Labels: of})
	for reason, n := range m.Aborts {
		add(metrics.Sample{Name: "aborts_total", Help: "Transactions that were aborted, by reason.", Kind: prometheus.CounterValue, Value: float64(n),
			Labels: []string{"database", database, "reason", txn.AbortReason(reason).String()}})
	}
}

// sampleCopies adds the metrics of a database's columnar copies, if it has any.
func sampleCopies(add func(metrics.Sample), database string, list []stats.ColumnarPolicy) {
	if len(list) == 0 {
		return
	}
	var sum stats.ColumnarPolicy
	for _, p := range list {
		sum.Chunks, sum.Missing, sum.Rows, sum.Bytes, sum.Changed = sum.Chunks+p.Chunks, sum.Missing+p.Missing, sum.Rows+p.Rows, sum.Bytes+p.Bytes, sum.Changed+p.Changed
		if sum.Oldest.IsZero() || !p.Oldest.IsZero() && p.Oldest.Before(sum.Oldest) {
			sum.Oldest = p.Oldest
		}
	}
	gauge := func(name, help string, v float64) {
		add(metrics.Sample{Name: "columnar_" + name, Help: help, Kind: prometheus.GaugeValue, Value: v, Labels: []string{"database", database}})
	}
	gauge("bytes", "Size of columnar copies, compressed.", float64(sum.Bytes))
	gauge("rows", "Rows of columnar copies.", float64(sum.Rows))
	gauge("chunks", "Key ranges that have been copied.", float64(sum.Chunks))
	gauge("missing_chunks", "Key ranges that have not been copied, or must be copied anew.", float64(sum.Missing))
	gauge("changed_rows", "About how many rows have changed since they were copied.", float64(sum.Changed))
	if !sum.Oldest.IsZero() {
		gauge("oldest_chunk_timestamp_seconds", "Oldest timestamp of a key range that has been copied, in Unix time.", float64(sum.Oldest.UnixMicro())/1e6)
	}
}

// countByKind returns the numbers of open regular and multiplexed sessions.
func (s *sessions) countByKind() map[string]int {
	counts := map[string]int{}
	s.byName.Range(func(_, v any) bool {
		kind := "regular"
		if v.(*session).stored.Multiplexed {
			kind = "multiplexed"
		}
		counts[kind]++
		return true
	})
	return counts
}
