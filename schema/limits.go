package schema

// Limits of a database. Source, unless said: https://cloud.google.com/spanner/quotas.
const (
	MaxNameLength      = 128        // characters of any schema object's name
	MaxTables          = 5000       // per database
	MaxColumns         = 1024       // per table
	MaxKeyParts        = 16         // per primary key, and per index key with the table's key parts it is completed with
	MaxInterleaveDepth = 7          // levels below the root table
	MaxIndexes         = 10_000     // per database
	MaxIndexesPerTable = 128        // likewise
	MaxStringLength    = 2_621_440  // characters of a STRING column
	MaxBytesLength     = 10_485_760 // bytes of a BYTES column
	maxVectorLength    = 2_621_440  // elements of an array with vector_length: as many FLOAT32 as a cell of 10 MiB holds
	MaxDDLBytes        = 10_485_760 // of one statement, and of the whole schema
	maxNesting         = 256        // of parentheses and the like in DDL; SQL allows 75 nested functions
	MaxViews           = 5000       // per database
	MaxFunctions       = 5000       // likewise; the emulator counts views and functions together
	maxViewNesting     = 10         // views that read each other
	MaxChangeStreams   = 10         // per database
	maxWatchers        = 3          // change streams that watch the same table or column
	maxRetentionHours  = 7 * 24     // version_retention_period
	minRetentionHours  = 1          // likewise
	// Source of these: https://cloud.google.com/spanner/docs/change-streams#data-retention. The page of the DDL allows seven days.
	minStreamRetentionDays = 1
	maxStreamRetentionDays = 30
	defaultStreamRetention = "1d"
	// maxChangeStreamName is in characters: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#create-change-stream.
	maxChangeStreamName = 118
	NewestOptimizer     = 8 // the newest optimizer_version: https://cloud.google.com/spanner/docs/query-optimizer/versions
)
