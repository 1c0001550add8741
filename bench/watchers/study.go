package watchers

import "github.com/crowfoot-db/crowfoot/bench/report"

// studyOfWatching is the publication whose table the flag --matrix repeats. Its benchmark ran on one node with 17
// million rows, with a poll every second and a limit of 10,000 rows per poll.
var studyOfWatching = report.Study{
	Title:  "Benchmark Spanner Change Watcher",
	Author: "Knut Olav Løite", Date: "Google Cloud Community, 13 April 2021",
}

// Published holds the figures of one row of the table in studyOfWatching. Poll is the value in the column "average poll
// time", which is the CPU time of a poll.
type Published struct {
	Load    string  `json:"load"`
	Poll    float64 `json:"avg_poll_seconds,omitempty"`
	CPU     float64 `json:"cpu_percent,omitempty"` // CPU time of all polls, in percent of one core
	Latency string  `json:"latency,omitempty"`
}

// publishedRow is a row of the table in studyOfWatching: the settings of a run, and the figures that were measured.
type publishedRow struct {
	transactions float64
	mutations    int
	watchers     int
	noHint       bool
	noShards     bool
	Published
}

var publishedRows = []publishedRow{
	{1, 5, 1, false, false, Published{"very light", 0.0085, 0, "1 s"}},
	{5, 20, 1, false, false, Published{"light", 0.0191, 1, "1 s"}},
	{10, 50, 1, false, false, Published{"medium", 0.0575, 3, "1 s"}},
	{25, 100, 1, false, false, Published{"high", 0.2912, 12, "2 s"}},
	{50, 200, 1, false, false, Published{"very high", 2.1908, 69, "never catches up"}},
	{50, 200, 2, false, false, Published{"very high", 0.8298, 42, "5 s"}},
	{50, 200, 4, false, false, Published{"very high", 0.2791, 42, "2 s"}},
	{50, 200, 8, false, false, Published{"very high", 0.1355, 48, "1 s"}},
	{5, 20, 1, true, false, Published{"light", 85.0711, 283, "30-60 s"}},
	{5, 20, 2, true, false, Published{"light", 80.8160, 404, "30-60 s"}},
	{5, 20, 8, true, false, Published{"light", 80.7088, 929, "> 60 s"}},
	{5, 20, 37, true, false, Published{"light", 81.6249, 910, "> 60 s"}},
	{5, 20, 1, false, true, Published{"light", 14.0975, 140, "11 s"}},
	{10, 50, 1, false, true, Published{"medium", 13.7384, 160, "10 s"}},
	{25, 100, 1, false, true, Published{"high", 14.8597, 173, "never catches up"}},
}

// bursts holds two settings for a load of few large transactions. studyOfWatching compares them, but gives no figures.
// With the first setting, a watcher polls seldom and with a small limit. With the second, it polls every second and
// with the usual limit.
var bursts = []Watching{
	{PollInterval: burstInterval, Limit: burstLimit, Watchers: 1},
	{PollInterval: studyInterval, Limit: studyLimit, Watchers: 1},
}
