package stats

import "time"

// Limits of texts that users see. The lengths are Spanner's:
// https://cloud.google.com/spanner/docs/introspection/query-statistics#query_stats_top,
// https://cloud.google.com/spanner/docs/introspection/troubleshooting-with-tags#limitations.
const (
	maxText = 64 << 10
	maxTag  = 50 // characters, see Tag
)

// Limits of a stored interval.
const (
	// keepTop is the number of rows per interval in a TOP table.
	keepTop = 100
	// keepProfiles is the number of query profiles kept per interval.
	keepProfiles = 20
	// keepTables and keepColumns bound the tables with a row for every table or column that was accessed. A database has at most
	// 5,000 tables (https://cloud.google.com/spanner/quotas#tables).
	keepTables  = 5_000
	keepColumns = 20_000
	// fullTexts is the number of bytes of text in a stored interval. Beyond it, lighter rows keep shortText bytes of their text.
	// So a day of hostile texts takes about 100 MiB, and usual texts stay whole.
	fullTexts = 256 << 10
	shortText = 2 << 10
	// maxProfile is the longest profile that is kept.
	maxProfile = 64 << 10
)

// Limits of the open minute, for each shard.
const (
	// boardTallies and boardTexts bound a board. When it exceeds one, its lighter half goes into the rest.
	boardTallies = 4 * keepTop
	boardTexts   = 2 << 20
	// boardAccesses is the number of different accesses that are counted before they are added up by table and column.
	boardAccesses = 1024
	// footprintAccesses is the number of different accesses kept per transaction. Columns of further accesses are not listed.
	footprintAccesses = 256
	// tallyTables is the number of tables that OPERATIONS_BY_TABLE lists.
	tallyTables = keepTables
	// lockSamples is Spanner's limit of SAMPLE_LOCK_REQUESTS:
	// https://cloud.google.com/spanner/docs/introspection/lock-statistics#lock_stats_top.
	lockSamples = 20
	// maxLockKey is the number of bytes of a key that a row of lock statistics shows.
	maxLockKey = 1 << 10
)

// flushInterval is the most of the open minute that a crash can lose.
const flushInterval = 10 * time.Second
