package report

import (
	"fmt"
	"time"
)

// Averages is a row of the server's statistics: the executions of one query or read in one interval. Latency, CPU and
// LeaderRefreshDelay are in microseconds. A field is nil if the statistics table does not have its column. Tables of
// queries have other columns than tables of reads.
type Averages struct {
	Table              string    `json:"table"` // table in SPANNER_SYS
	End                time.Time `json:"interval_end"`
	Fingerprint        int64     `json:"fingerprint"`
	Executions         int64     `json:"execution_count"`
	Latency            *float64  `json:"avg_latency_us,omitempty"`
	CPU                float64   `json:"avg_cpu_us"`
	LeaderRefreshDelay *float64  `json:"avg_leader_refresh_delay_us,omitempty"`
	Rows               float64   `json:"avg_rows"`
	Bytes              float64   `json:"avg_bytes"`
	RemoteCalls        *float64  `json:"avg_remote_server_calls,omitempty"`
}

func (a Averages) cells() []string {
	ms := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4g", *v/1e3)
	}
	calls := "-"
	if a.RemoteCalls != nil {
		calls = fmt.Sprintf("%.3g", *a.RemoteCalls)
	}
	return []string{fmt.Sprint(a.Executions), ms(a.Latency), ms(&a.CPU), ms(a.LeaderRefreshDelay), fmt.Sprintf("%.4g", a.Rows), fmt.Sprintf("%.1f", a.Bytes), calls}
}

// averageCPU returns the average CPU time of one operation according to the server's statistics, in microseconds. It
// returns nil if the statistics have none.
func (m *Measure) averageCPU() *float64 {
	if len(m.Averages) == 0 {
		return nil
	}
	var sum float64
	for _, a := range m.Averages {
		sum += a.CPU
	}
	return &sum
}
