package watch

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// A Source lists the feeds from which changes come.
type Source interface {
	// ID returns the zero FeedID if the source never gets new feeds. Otherwise, the repository stores under this id
	// the timestamp at which watching began, and new feeds begin there.
	ID() FeedID
	// Feeds lists the feeds that exist now. The watcher calls it again after each Options.DiscoveryInterval. It starts
	// feeds that are new and stops feeds that are no longer listed.
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
	// Deliver passes transactions to the handler, in this order. It returns how many of them, counted from the first,
	// the handler has handled. If these are not all, Deliver also returns an error, because ctx has ended or the
	// handler's error is fatal. Read must return that error.
	Deliver(ctx context.Context, list []*Transaction) (int, error)
	// Checkpoint tells the watcher how much has been delivered. The watcher stores c within
	// Options.CheckpointInterval, and when Run ends.
	Checkpoint(c Checkpoint)
	// Stored returns the newest checkpoint that is stored in the repository.
	Stored() Checkpoint
	// Delivered tells the watcher that every change that was committed at or before until has been delivered. A call of
	// Checkpoint tells it the same for c.Timestamp.
	Delivered(until time.Time)
	// Observe adds a read of the source to the metrics.
	Observe(r Reading)
	// Report logs an error that does not end Read.
	Report(err error)
}

// A Reading describes one read of the source: a page of a poll, or a record of a change stream.
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

// ShardID is the value, or list of values, that a feed's rows have in the shard column.
type ShardID struct {
	Type spannerpb.TypeCode // the type of the shard column; STRING for a list
	Text string             // the value as JSON of Spanner's API, without quotation marks; a list has commas between its values
}

// A Checkpoint says how much of a feed is delivered.
type Checkpoint struct {
	// Timestamp is a commit timestamp up to which everything is delivered: every change that was committed at or
	// before it.
	Timestamp time.Time
	// Position says what else has been delivered after Timestamp, in a format that only the feed knows; "" if nothing.
	// If a repository cannot store it, everything after Timestamp is delivered again.
	Position string
}
