package stats

import "time"

// Limits of texts that users see: maxText of SQL texts, in bytes, and maxTag of tags. Both limits are Spanner's:
// https://cloud.google.com/spanner/docs/introspection/query-statistics#query_stats_top,
// https://cloud.google.com/spanner/docs/introspection/troubleshooting-with-tags#limitations.
const (
	maxText = 64 << 10
	maxTag  = 50 // how many characters of a tag are shown (see Tag)
)

// Limits of what is stored for an interval.
const (
	// keepTop is the number of rows per interval in a TOP table.
	keepTop = 100
	// keepProfiles is the number of query profiles kept per interval.
	keepProfiles = 20
	// keepTables and keepColumns limit the number of rows per interval in the tables that have a row for every table or
	// column that was accessed. A database has at most 5,000 tables (https://cloud.google.com/spanner/quotas#tables).
	keepTables  = 5_000
	keepColumns = 20_000
	// fullTexts limits the bytes of text that are stored in full for an interval. The text of the heaviest row comes
	// first. A text that would exceed the limit is cut to shortText bytes. So usual texts are stored whole, and even
	// the longest SQL texts that a hostile client can send take only about 450 KiB per interval.
	fullTexts = 256 << 10
	shortText = 2 << 10
	// maxProfile is the length in bytes of the longest profile that is stored.
	maxProfile = 64 << 10
)

// Limits of the statistics of the current minute, for each shard of the Collector.
const (
	// boardTallies is how many tallies a board can have (unless family.keep is larger), and boardTexts how many bytes
	// of text. A board that exceeds one of these limits adds its lighter half to its tally rest.
	boardTallies = 4 * keepTop
	boardTexts   = 2 << 20
	// boardAccesses is how many different accesses a shard counts separately. When it has counted this number of
	// different accesses, it adds their counts up by table and column.
	boardAccesses = 1024
	// footprintAccesses is how many different accesses of a transaction are remembered. Columns of further accesses are
	// not listed.
	footprintAccesses = 256
	// tallyTables is how many tables OPERATIONS_BY_TABLE can list.
	tallyTables = keepTables
	// lockSamples is Spanner's limit of SAMPLE_LOCK_REQUESTS:
	// https://cloud.google.com/spanner/docs/introspection/lock-statistics#lock_stats_top.
	lockSamples = 20
	// maxLockKey is how many bytes of a key a row of lock statistics shows.
	maxLockKey = 1 << 10
)

// flushInterval is the time between two writes of the current minute's statistics to the store. A written copy is
// durable after the next synced write. So a crash of the process usually loses at most the counts of this time.
const flushInterval = 10 * time.Second
