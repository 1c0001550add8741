package watch

import (
	"context"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
)

// Tables is the Source that polls tables. Each has a column with the option allow_commit_timestamp that every write of a row sets to
// PENDING_COMMIT_TIMESTAMP() (spanner.CommitTimestamp). A write that sets it to a time of the past is not seen.
//
// Keep an index on the shard column, if there is one, and the commit timestamp: without it every poll reads the whole table.
//
// A table that is dropped and made again is watched from where its feed was: all rows of the new one are later. If it has another primary key and was away
// for less than a poll, its changes may come with the former key's columns for up to ten seconds.
type Tables struct {
	Client *spanner.Client
	// Include are the tables to watch, as Name or Schema.Name. None means all that have a commit-timestamp column, also those that are made later.
	Include []string
	// Exclude are tables that are not watched. One that does not exist is logged when Run begins.
	Exclude []string
	// Default is for tables that Options does not have.
	Default TableOptions
	// Options are for single tables, by Name or Schema.Name.
	Options map[string]TableOptions
	// Interval is from the start of one poll of a table to that of the next; 0 is a second. A page that is full is followed by the next at once.
	Interval time.Duration
	// MaxInterval is to what the interval of a table grows that does not change; 0 is Interval. The first change brings Interval back.
	MaxInterval time.Duration
}

// TableOptions say how a table is polled.
type TableOptions struct {
	// CommitTimestamp is the column; "" is the only one that has the option allow_commit_timestamp.
	CommitTimestamp string
	// Columns are read; none means all. The key and the commit timestamp are read anyway.
	Columns []string
	// Shards pick rows by a shard column; nil is all rows.
	Shards ShardProvider
	// ChangeSets, if it is not nil, has the table watched through a table of change sets: it need not have a commit timestamp.
	ChangeSets *ChangeSets
	// Hint stands behind the table's name, such as @{FORCE_INDEX=SingersByLastUpdated}.
	Hint string
	// Limit is how many rows a page has at most; 0 is 10,000. Pages of large rows end at 32 MiB.
	Limit int
	// RequestTag is of the queries for new rows, so that the statistics of the database tell them from others
	// (https://cloud.google.com/spanner/docs/introspection/troubleshooting-with-tags).
	RequestTag string
	// PruneAfter, if it is not 0, has the commit timestamps of rows set to NULL that are older and were delivered, by a checkpoint that is stored. An
	// index on the column that is NULL_FILTERED then stays small. Other watchers of the table must not be behind by as much.
	// Where no index has the column, pruning locks the whole table each time. It is refused with ChangeSets.
	PruneAfter time.Duration
}

const (
	defaultInterval = time.Second
	defaultLimit    = 10_000
)

// ID names the database when all of it is watched.
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

// Now is the timestamp of a strong read.
func (t *Tables) Now(ctx context.Context) (time.Time, error) {
	return now(ctx, t.Client)
}

// now is the timestamp of a strong read, which is the database's time.
func now(ctx context.Context, client *spanner.Client) (time.Time, error) {
	ro := client.Single()
	if err := ro.Query(ctx, spanner.NewStatement("SELECT 1")).Do(func(*spanner.Row) error { return nil }); err != nil {
		return time.Time{}, err
	}
	return ro.Timestamp()
}

// Feeds lists the tables. One that is included and does not exist is listed, too: to read it fails.
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

// absent are the tables of Exclude and Options that do not exist. One of Include is listed, and fails.
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

// withoutThose leaves out tables that exist, and orders the rest by name.
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

// included are the tables of some names, once each, in the case in which the database has them.
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

// named is the table of a name in a statement.
func named(database, name string) TableID {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return TableID{Database: database, Schema: schema, Name: table}
	}
	return TableID{Database: database, Name: name}
}

func contains(names []string, id TableID) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, id.String()) })
}
