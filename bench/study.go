package bench

// The studies that are re-run.
var (
	studyOfReads = Study{
		Title:  "Cloud Spanner — Performance comparison between SQL and READ",
		Author: "Pablo Arrojo", Date: "Google Cloud Community, 11 September 2024",
	}
	studyOfWrites = Study{
		Title:  "Cloud Spanner — Latency comparison between DML and Mutations",
		Author: "Pablo Arrojo", Date: "Google Cloud Community, 23 May 2023",
	}
)
