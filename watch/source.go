package watch

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// A Source lists the feeds from which changes come.
type Source interface {
	// ID returns the zero FeedID if the source never gets new feeds. Otherwise, the repository stores under this id
	// the start timestamp of the first watcher, and feeds that appear later start at this timestamp.
	ID() FeedID
	// Feeds lists the feeds that exist now. The watcher calls Feeds again after each Options.DiscoveryInterval. Then the
	// watcher starts the feeds that are new and stops those that are no longer listed.
	Feeds(ctx context.Context) ([]Feed, error)
	// Now returns the timestamp of a strong read. A feed without a checkpoint starts after this timestamp, unless
	// Options.Start gives another one.
	Now(ctx context.Context) (time.Time, error)
}

// A Feed is a unit that is read, checkpointed and retried by itself: a table that is polled, or a change stream.
type Feed interface {
	ID() FeedID
	// Read passes the changes after a checkpoint to out until ctx ends, and then returns ctx's error. It returns nil
	// if the feed has ended for good. After any other error, the watcher pauses and calls Read again with the newest
	// checkpoint that Read has passed to out.
	Read(ctx context.Context, from Checkpoint, out Sink) error
}

// A Sink takes the changes that a feed reads. Its methods may be called from several goroutines.
type Sink interface {
	// Deliver passes the transactions of a list to the handler, in the order of the list. It returns how many of them,
	// counted from the first, the handler has handled. If the handler has not handled all, Deliver also returns an
	// error: ctx has ended, or the handler's error is fatal. Read must return that error.
	Deliver(ctx context.Context, list []*Transaction) (int, error)
	// Checkpoint tells the watcher how much has been delivered. The watcher stores c within
	// Options.CheckpointInterval, and when Run ends.
	Checkpoint(c Checkpoint)
	// Stored returns the newest checkpoint that is stored in the repository.
	Stored() Checkpoint
	// Delivered tells the watcher that all changes with commit timestamps up to the parameter until are delivered. A
	// call of Checkpoint tells the watcher the same for commit timestamps up to c.Timestamp.
	Delivered(until time.Time)
	// Observe adds a read of the source to the metrics.
	Observe(r Reading)
	// Report logs an error that does not end Read.
	Report(err error)
}

// A Reading describes one read of the source: a page of a poll, or a record of a change stream. If Pruned is not 0, the
// Reading describes one pruning of old commit timestamps instead, and its other fields are zero.
type Reading struct {
	Timestamp time.Time // the timestamp at which the source was read
	Polls     int       // 1 for the first page of a poll, else 0, so that a poll counts once
	Rows      int
	Duration  time.Duration // the time from the request to the last row
	Pruned    int           // the number of rows whose commit timestamp was set to NULL
}

// A FeedID identifies a feed in metrics and in a Repository.
type FeedID struct {
	TableID         // the table; for a change stream, its database and name
	Shard   ShardID // the part of the table that is read; the zero value means the whole table
}

// String returns the name of the table or stream, with the shard.
func (f FeedID) String() string {
	if f.Shard == (ShardID{}) {
		return f.TableID.String()
	}
	return f.TableID.String() + " shard " + f.Shard.Text
}

// ShardID is the value, or list of values, that a feed's rows have in the shard column. If a table is watched through
// ChangeSets, its ShardID holds the table's full name, followed by this value.
type ShardID struct {
	Type spannerpb.TypeCode // the type of the shard column; STRING for a list, a NUMERIC, or a table's name
	// Text is the value in the coding of Spanner's API. The values of a list are separated by commas, and strings in a
	// list are in base64.
	Text string
}

// A Checkpoint says how much of a feed is delivered.
type Checkpoint struct {
	// Every change that was committed at or before Timestamp is delivered.
	Timestamp time.Time
	// Position says which changes after Timestamp are delivered, in a format that only the feed knows; "" means none.
	// If a repository cannot store Position, all changes after Timestamp are delivered again.
	Position string
}
