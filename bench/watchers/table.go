package watchers

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
)

// The table is that of the benchmark application of Google's Spanner Change Watcher. It has a key, texts, a picture,
// the commit timestamp, and a shard column that is computed from the names. Shard values are from -18 to 18, because
// MOD takes the sign of its first argument. The index leaves out rows whose shard or timestamp is NULL.
const (
	shardModulus = 19
	shardValues  = 2*shardModulus - 1

	watchTableDDL = "CREATE TABLE `%s` (\n" +
		"  SingerId     INT64 NOT NULL,\n" +
		"  FirstName    STRING(200),\n" +
		"  LastName     STRING(200) NOT NULL,\n" +
		"  BirthDate    DATE,\n" +
		"  Picture      BYTES(MAX),\n" +
		"  LastUpdated  TIMESTAMP OPTIONS (allow_commit_timestamp=true),\n" +
		"  Processed    BOOL,\n" +
		"  ShardId      INT64 AS (\n" +
		"    CASE\n" +
		"      WHEN Processed THEN NULL\n" +
		"      ELSE MOD(FARM_FINGERPRINT(COALESCE(FirstName || ' ', '') || LastName), 19)\n" +
		"    END) STORED,\n" +
		") PRIMARY KEY (SingerId)"
	watchIndexDDL = "CREATE NULL_FILTERED INDEX `%s` ON `%s` (ShardId, LastUpdated)"
)

const (
	shardColumn     = "ShardId"
	timestampColumn = "LastUpdated"
)

var singerColumns = []string{"SingerId", "FirstName", "LastName", "BirthDate", "Picture", "Processed", timestampColumn}

const (
	// pictureSize is the largest size of a picture in the load, in bytes. It is that of the benchmark application of
	// Google's Spanner Change Watcher.
	pictureSize = 1024
	// oldPictureSize is the largest size in bytes of a picture in rows that are written before the load. It is smaller
	// than pictureSize, because polls never read these rows. The published benchmark studyOfWatching has 17 million
	// such rows, but does not describe their contents.
	oldPictureSize = 32
	// nameSize is the largest number of random bytes in a name. The name is their base64 encoding.
	nameSize = 10
	// oldestRow is the age of the oldest row that is written before the load, according to its commit timestamp.
	oldestRow = 30 * 24 * time.Hour
)

// singers generates rows of the table.
type singers struct {
	table   string
	rand    *rand.Rand
	picture []byte // random bytes from which pictures are cut
	largest int    // largest size of a picture, in bytes
}

func newSingers(table string, seed uint64, largest int) *singers {
	s := &singers{table: table, rand: rand.New(rand.NewPCG(seed, 1)), largest: largest, picture: make([]byte, 64*pictureSize)}
	for i := range s.picture {
		s.picture[i] = byte(s.rand.Uint32())
	}
	return s
}

// seeded returns a copy of s with another seed, for use by another goroutine.
func (s *singers) seeded(seed uint64) *singers {
	other := *s
	other.rand = rand.New(rand.NewPCG(seed, 1))
	return &other
}

// list returns mutations that write the rows of n changes. number is the number of the first change.
func (s *singers) list(number int64, n int) []*spanner.Mutation {
	list := make([]*spanner.Mutation, n)
	for i := range list {
		list[i] = s.row(number+int64(i), spanner.CommitTimestamp)
	}
	return list
}

// row returns the mutation of the change with the given number. The mutation writes one row with random contents. The
// parameter at is the value of the row's timestamp column: a time, spanner.CommitTimestamp, or NULL.
func (s *singers) row(number int64, at any) *spanner.Mutation {
	size := 1 + s.rand.IntN(s.largest)
	from := s.rand.IntN(len(s.picture) - size)
	born := civil.Date{Year: 1 + s.rand.IntN(2019), Month: time.Month(1 + s.rand.IntN(12)), Day: 1 + s.rand.IntN(28)}
	return spanner.InsertOrUpdate(s.table, singerColumns, []any{singerKey(number), s.name(), s.name(), born, s.picture[from : from+size], false, at})
}

func (s *singers) name() string {
	var b [nameSize]byte
	n := 1 + s.rand.IntN(nameSize)
	for i := range b[:n] {
		b[i] = byte(s.rand.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b[:n])
}

// makeWatchTable creates the table and its index if they do not exist, and fills the table if it has too few rows. It
// returns the number of rows in the table. The run gives this number to its first change, because the changes that
// wrote the existing rows have the lower numbers.
func (w *watchRun) makeWatchTable(ctx context.Context) (rows int64, err error) {
	if w.Drop {
		if err := w.dropTable(ctx); err != nil {
			return 0, err
		}
		// The stored checkpoints belong to the dropped table and its change stream. A watcher that started at such a
		// checkpoint would ask the new stream for records from before its creation, which do not exist.
		if err := w.forget(ctx); err != nil {
			return 0, err
		}
	}
	for _, part := range []struct{ view, column, name, ddl string }{
		{"TABLES", "TABLE_NAME", w.Table, fmt.Sprintf(watchTableDDL, w.Table)},
		{"INDEXES", "INDEX_NAME", w.Index, fmt.Sprintf(watchIndexDDL, w.Index, w.Table)},
	} {
		there, err := w.target.Has(ctx, part.view, part.column, part.name)
		if err != nil {
			return 0, err
		}
		if there || part.name == "" {
			continue
		}
		if err := w.target.CreateTables(ctx, part.ddl); err != nil {
			return 0, err
		}
	}
	if rows, err = w.countRows(ctx); err != nil {
		return 0, err
	}
	if rows < int64(w.Rows) {
		rows = int64(w.Rows)
		err = w.fillWatchTable(ctx)
	}
	if err == nil && w.Prune > 0 {
		err = w.pruneTable(ctx)
	}
	if err == nil && w.Source == Stream {
		err = w.makeWatchStream(ctx)
	}
	return rows, err
}

// stream returns the name of the table's change stream.
func (w *watchRun) stream() string { return w.Table + "Stream" }

// makeWatchStream splits the table so that the change stream has w.Watchers partitions. It creates the change stream if
// the stream is missing.
func (w *watchRun) makeWatchStream(ctx context.Context) error {
	var keys []string
	for i := 1; i < w.Watchers; i++ {
		keys = append(keys, fmt.Sprint(keySpace/w.Watchers*i))
	}
	if len(keys) > 0 {
		note, err := w.target.AddSplitPoints(ctx, w.Table, keys)
		if err != nil {
			return err
		}
		w.fact("%s", note)
	}
	return makeStream(ctx, w.target, w.stream(), w.Table)
}

// pruneTable sets the timestamps of the existing rows to NULL, as if these rows had always been pruned. This removes
// them from the index.
func (w *watchRun) pruneTable(ctx context.Context) error {
	w.screen.Note("pruning " + w.Table)
	statement := spanner.NewStatement("UPDATE `" + w.Table + "` SET " + timestampColumn + " = NULL WHERE " + timestampColumn + " IS NOT NULL")
	n, err := w.target.Client.PartitionedUpdate(ctx, statement)
	if err == nil {
		w.fact("%d rows were pruned before the load", n)
	}
	return err
}

// fillWatchTable writes rows with timestamps in the past, the oldest first. If an earlier run wrote only some of the
// rows, fillWatchTable writes all of them again.
func (w *watchRun) fillWatchTable(ctx context.Context) error {
	now := time.Now().Add(-time.Minute)
	apart := oldestRow / time.Duration(w.Rows)
	took, err := w.target.Fill(ctx, w.screen, w.Table, w.Rows, func(first, last int64) []*spanner.Mutation {
		s := newSingers(w.Table, w.Seed+uint64(first)<<32, oldPictureSize)
		var at any = now.Add(-apart * time.Duration(int64(w.Rows)-first)).Truncate(time.Microsecond)
		if w.Prune > 0 {
			at = spanner.NullTime{} // like rows that were pruned long ago
		}
		var list []*spanner.Mutation
		for i := first; i < last; i++ {
			list = append(list, s.row(i, at))
		}
		return list
	})
	if err == nil {
		w.fact("%s has %d rows with timestamps of the last %d days, loaded at %.0f rows/s", w.Table, w.Rows, oldestRow/(24*time.Hour), float64(w.Rows)/took.Seconds())
	}
	return err
}

func (w *watchRun) countRows(ctx context.Context) (n int64, err error) {
	it := w.target.Client.Single().Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM `"+w.Table+"`"))
	err = it.Do(func(r *spanner.Row) error { return r.Columns(&n) })
	return n, err
}

// dropTable drops the table, its indexes and its change stream.
func (w *watchRun) dropTable(ctx context.Context) error {
	var ddl []string
	it := w.target.Client.Single().Query(ctx, spanner.Statement{
		SQL:    "SELECT INDEX_NAME FROM INFORMATION_SCHEMA.INDEXES WHERE TABLE_SCHEMA = '' AND TABLE_NAME = @table AND INDEX_TYPE = 'INDEX'",
		Params: map[string]any{"table": w.Table},
	})
	err := it.Do(func(r *spanner.Row) error {
		var index string
		err := r.Columns(&index)
		ddl = append(ddl, "DROP INDEX `"+index+"`")
		return err
	})
	if err != nil {
		return err
	}
	there, err := hasStream(ctx, w.target, w.stream())
	if err != nil {
		return err
	}
	if there {
		ddl = append(ddl, "DROP CHANGE STREAM `"+w.stream()+"`")
	}
	if there, err = w.target.Has(ctx, "TABLES", "TABLE_NAME", w.Table); err != nil || !there {
		return err
	}
	return w.target.CreateTables(ctx, append(ddl, "DROP TABLE `"+w.Table+"`")...)
}
