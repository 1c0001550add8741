package schema

// These are limits of a database. One more limit is syntax.MaxBytes: neither a statement nor the DDL of a whole schema
// may have more bytes. Unless another source is named, the source is https://cloud.google.com/spanner/quotas.
const (
	MaxNameLength      = 128        // characters of the name of any schema object
	MaxTables          = 5000       // per database
	MaxColumns         = 1024       // per table
	MaxKeyParts        = 16         // columns per primary key, and per index key together with the primary key
	MaxInterleaveDepth = 7          // levels of tables below the root table
	MaxIndexes         = 10_000     // per database
	MaxIndexesPerTable = 128        // per table
	MaxStringLength    = 2_621_440  // characters of a STRING column
	MaxBytesLength     = 10_485_760 // bytes of a BYTES column
	maxVectorLength    = 2_621_440  // elements of an array with vector_length: a cell of 10 MiB holds this many FLOAT32
	MaxViews           = 5000       // per database
	MaxFunctions       = 5000       // per database, without views (Google's Spanner emulator counts both together)
	maxViewNesting     = 10         // views and functions in a chain, each of which names the next
	MaxChangeStreams   = 10         // per database
	maxWatchers        = 3          // change streams that watch the same table or the same column
	maxRetentionHours  = 7 * 24     // hours of version_retention_period
	minRetentionHours  = 1          // hours of version_retention_period
	// The next two limits are those of https://cloud.google.com/spanner/docs/change-streams#data-retention. Crowfoot
	// follows that page, although the DDL reference says that the maximum is seven days.
	minStreamRetentionDays = 1
	maxStreamRetentionDays = 30
	defaultStreamRetention = "1d"
	// maxChangeStreamName is the largest number of characters in the name of a change stream:
	// https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#create-change-stream.
	maxChangeStreamName = 118
	NewestOptimizer     = 8 // the newest optimizer_version: https://cloud.google.com/spanner/docs/query-optimizer/versions
)
