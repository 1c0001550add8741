package studies

import "github.com/crowfoot-db/crowfoot/bench/report"

// The studies that the benchmarks repeat.
var (
	studyOfReads = report.Study{
		Title:  "Cloud Spanner — Performance comparison between SQL and READ",
		Author: "Pablo Arrojo", Date: "Google Cloud Community, 11 September 2024",
		Sentence: "On Cloud Spanner SQL took %s times the server CPU of READ; here it takes %s times.",
	}
	studyOfWrites = report.Study{
		Title:  "Cloud Spanner — Latency comparison between DML and Mutations",
		Author: "Pablo Arrojo", Date: "Google Cloud Community, 23 May 2023",
		Sentence: "On Cloud Spanner DML took %s times as long as mutations; here it takes %s times.",
	}
)
