package stats

import "time"

// What users see of a text. The lengths are Spanner's:
// https://cloud.google.com/spanner/docs/introspection/query-statistics#query_stats_top,
// https://cloud.google.com/spanner/docs/introspection/troubleshooting-with-tags#limitations.
const (
	maxText = 64 << 10
	maxTag  = 50 // characters, see Tag
)

// What is kept of an interval.
const (
	// keepTop is how many rows of an interval a TOP table has.
	keepTop = 100
	// keepProfiles is how many query profiles an interval keeps.
	keepProfiles = 20
	// keepTables and keepColumns bound tables that list everything that was touched: a database has at most 5,000
	// tables (https://cloud.google.com/spanner/quotas#tables).
	keepTables  = 5_000
	keepColumns = 20_000
	// fullTexts is how many bytes of texts a stored interval holds; lighter rows behind that have shortText bytes of
	// theirs. So a day of hostile texts takes some 100 MiB, and usual texts stay whole.
	fullTexts = 256 << 10
	shortText = 2 << 10
	// maxProfile is the longest profile that is kept.
	maxProfile = 64 << 10
)

// What the open minute holds, for each shard.
const (
	// boardTallies and boardTexts bound a board: beyond, its lighter half goes into the rest.
	boardTallies = 4 * keepTop
	boardTexts   = 2 << 20
	// boardAccesses is how many kinds of accesses are counted before they are added up by table and column.
	boardAccesses = 1024
	// footprintAccesses is how many accesses of a transaction are told apart: its columns beyond are not listed.
	footprintAccesses = 256
	// tallyTables is how many tables OPERATIONS_BY_TABLE tells apart.
	tallyTables = keepTables
	// lockSamples is Spanner's limit of SAMPLE_LOCK_REQUESTS:
	// https://cloud.google.com/spanner/docs/introspection/lock-statistics#lock_stats_top.
	lockSamples = 20
	// maxLockKey is how much of a key a row of lock statistics shows.
	maxLockKey = 1 << 10
)

// flushInterval is how much of the open minute a crash can lose.
const flushInterval = 10 * time.Second
