package watch

import (
	"context"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
)

// Tables is the Source that polls tables. Each table needs a column with the option allow_commit_timestamp, and every
// write of a row must set this column to PENDING_COMMIT_TIMESTAMP() (spanner.CommitTimestamp). Polls do not see a
// write that sets the column to a time in the past.
//
// Create an index on the commit timestamp. If TableOptions.Shards selects rows by a shard column, the index must have
// this column before the commit timestamp. Without such an index, every poll reads the whole table.
//
// If a table is dropped and created again, its feed continues from its checkpoint. No row is left out, because all rows
// of the new table have later commit timestamps than the checkpoint. If the new table has another primary key and was
// created before the next poll, changes may come with the columns of the old key for up to ten seconds.
type Tables struct {
	Client *spanner.Client
	// Include lists the tables to watch, as Name or Schema.Name. An empty list means all tables that have a
	// commit-timestamp column, including tables that are created later.
	Include []string
	// Exclude lists tables that are not watched. At its start, Run logs those that do not exist.
	Exclude []string
	// Default applies to tables that are not in Options.
	Default TableOptions
	// Options apply to single tables, by Name or Schema.Name.
	Options map[string]TableOptions
	// Interval is the time from the start of one poll of a table to the start of the next; 0 means one second. After a
	// full page, the next page is read at once.
	Interval time.Duration
	// MaxInterval is the limit up to which the interval grows while a table has no changes; 0 means Interval. The
	// first change resets the interval to Interval.
	MaxInterval time.Duration
}

// TableOptions say how a table is polled.
type TableOptions struct {
	// CommitTimestamp is the name of the commit-timestamp column. If it is "", the table must have only one column
	// with the option allow_commit_timestamp, which is then used.
	CommitTimestamp string
	// Columns lists the columns to read; an empty list means all columns. The key and the commit timestamp are always
	// read.
	Columns []string
	// Shards selects rows by a shard column; nil selects all rows.
	Shards ShardProvider
	// ChangeSets, if not nil, names a table of change sets through which the table is watched. The table itself then
	// needs no commit timestamp.
	ChangeSets *ChangeSets
	// Hint is a table hint that follows the table's name in queries, such as @{FORCE_INDEX=SingersByLastUpdated}.
	Hint string
	// Limit is the maximum number of rows in a page; 0 is 10,000. Pages of large rows end at 32 MiB.
	Limit int
	// RequestTag is the request tag of the queries for new rows, which identifies them in the database's statistics
	// (https://cloud.google.com/spanner/docs/introspection/troubleshooting-with-tags).
	RequestTag string
	// PruneAfter, if not 0, is the age after which the commit timestamp of a row is set to NULL, once a stored
	// checkpoint says that the row was delivered. A NULL_FILTERED index on the commit timestamp then stays small. No
	// other watcher of the table may lag by PruneAfter or more, because it would not see the pruned rows. If no index
	// has the commit timestamp, each pruning locks the whole table. PruneAfter cannot be combined with ChangeSets.
	PruneAfter time.Duration
}

const (
	defaultInterval = time.Second
	defaultLimit    = 10_000
)

// ID returns an id with the database if Include is empty, since new tables may then appear later. Otherwise it returns
// the zero FeedID.
func (t *Tables) ID() FeedID {
	if len(t.Include) > 0 {
		return FeedID{}
	}
	id := FeedID{TableID: TableID{Database: t.Client.DatabaseName()}}
	if t.Default.Shards != nil {
		id.Shard = t.Default.Shards.ID()
	}
	return id
}

// Now returns the timestamp of a strong read.
func (t *Tables) Now(ctx context.Context) (time.Time, error) {
	return now(ctx, t.Client)
}

// now returns the timestamp of a strong read, which is the database's time.
func now(ctx context.Context, client *spanner.Client) (time.Time, error) {
	ro := client.Single()
	if err := ro.Query(ctx, spanner.NewStatement("SELECT 1")).Do(func(*spanner.Row) error { return nil }); err != nil {
		return time.Time{}, err
	}
	return ro.Timestamp()
}

// Feeds returns a feed for each table. If a table of Include does not exist, Feeds returns a feed for it, too, and
// reading that feed fails.
func (t *Tables) Feeds(ctx context.Context) ([]Feed, error) {
	column := ""
	if t.Default.ChangeSets != nil {
		column = t.Default.ChangeSets.dataColumn()
	}
	named := slices.Clone(t.Include)
	for name, o := range t.Options {
		if o.CommitTimestamp != "" || o.ChangeSets != nil {
			named = append(named, name)
		}
	}
	found, err := list(ctx, t.Client, column, named)
	if err != nil {
		return nil, err
	}
	if len(t.Include) > 0 {
		found = included(t.Client.DatabaseName(), found, t.Include)
	}
	var feeds []Feed
	for _, id := range found {
		o := t.options(id)
		if contains(t.Exclude, id) || o.ChangeSets != nil && strings.EqualFold(id.String(), o.ChangeSets.table()) {
			continue
		}
		feeds = append(feeds, &poll{client: t.Client, table: id, o: o, interval: t.interval(), max: max(t.MaxInterval, t.interval())})
	}
	return feeds, nil
}

// absent returns the tables named in Exclude and Options that do not exist. It leaves out tables of Include, since
// their feeds report the error.
func (t *Tables) absent(ctx context.Context) (absent []absentTable, err error) {
	for name := range t.Options {
		if !slices.ContainsFunc(t.Include, func(n string) bool { return strings.EqualFold(n, name) }) {
			absent = append(absent, absentTable{name, "Options"})
		}
	}
	for _, name := range t.Exclude {
		absent = append(absent, absentTable{name, "Exclude"})
	}
	return withoutThose(ctx, t.Client, absent)
}

// withoutThose removes from the list absent the tables that do exist, and sorts the remaining ones by name.
func withoutThose(ctx context.Context, client *spanner.Client, absent []absentTable) ([]absentTable, error) {
	if len(absent) == 0 {
		return nil, nil
	}
	var names []string
	for _, a := range absent {
		names = append(names, a.table)
	}
	found, err := list(ctx, client, "", names)
	if err != nil {
		return nil, err
	}
	absent = slices.DeleteFunc(absent, func(a absentTable) bool {
		return slices.ContainsFunc(found, func(id TableID) bool { return strings.EqualFold(id.String(), a.table) })
	})
	slices.SortFunc(absent, func(a, b absentTable) int { return strings.Compare(a.table, b.table) })
	return absent, nil
}

func (t *Tables) interval() time.Duration {
	if t.Interval == 0 {
		return defaultInterval
	}
	return t.Interval
}

func (t *Tables) options(id TableID) TableOptions {
	o := t.Default
	for name, own := range t.Options {
		if strings.EqualFold(name, id.String()) {
			o = own
		}
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	return o
}

// included returns the tables with the given names, each once, in the spelling of the database.
func included(database string, found []TableID, names []string) []TableID {
	var all []TableID
	for _, name := range names {
		id := named(database, name)
		for _, f := range found {
			if strings.EqualFold(f.String(), name) {
				id = f
			}
		}
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// named returns the id of the table that a name in SQL refers to.
func named(database, name string) TableID {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return TableID{Database: database, Schema: schema, Name: table}
	}
	return TableID{Database: database, Name: name}
}

func contains(names []string, id TableID) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, id.String()) })
}
