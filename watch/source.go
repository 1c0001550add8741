package watch

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// A Source is where changes come from.
type Source interface {
	// ID is not zero if feeds may appear later: under it the repository keeps where the watching began, and feeds that appear begin there.
	ID() FeedID
	// Feeds lists what there is to read. The watcher asks again and again (Options.DiscoveryInterval), starts feeds that are new and
	// forgets those that are no longer listed.
	Feeds(ctx context.Context) ([]Feed, error)
	// Now is the timestamp of a strong read: a feed without a checkpoint starts behind it, unless Options.Start says otherwise.
	Now(ctx context.Context) (time.Time, error)
}

// A Feed is what is read, checkpointed and retried by itself: a table that is polled, or a change stream.
type Feed interface {
	ID() FeedID
	// Read gives out the changes behind a checkpoint until ctx ends. It returns nil if it has come to an end for good, and ctx's error once that
	// has ended. After any other error the watcher calls it again, with the newest checkpoint that out was given, after a pause.
	Read(ctx context.Context, from Checkpoint, out Sink) error
}

// A Sink takes what a feed reads. Its methods may be called from several goroutines.
type Sink interface {
	// Deliver has the handler take transactions, in their order. It returns how many the handler has taken, from the first on: all of them, or
	// fewer with an error that Read is to return: ctx has ended, or the handler's error is fatal.
	Deliver(ctx context.Context, list []*Transaction) (int, error)
	// Checkpoint says what has been delivered. The watcher stores it within Options.CheckpointInterval, and when Run ends.
	Checkpoint(c Checkpoint)
	// Stored is the newest checkpoint that the repository has.
	Stored() Checkpoint
	// Delivered says that everything that was committed at or before a timestamp is delivered. Checkpoint says so, too.
	Delivered(until time.Time)
	// Observe counts a read of the source.
	Observe(r Reading)
	// Report tells of an error that does not end Read.
	Report(err error)
}

// A Reading is what one read of the source brought: a page of a poll, or a record of a change stream.
type Reading struct {
	Timestamp time.Time // at which the source was read
	Polls     int       // 1 with the first page of a poll
	Rows      int
	Duration  time.Duration // from the request to the last row
	Pruned    int           // rows whose commit timestamp was set to NULL
}

// A FeedID names a feed in figures and in a Repository.
type FeedID struct {
	TableID         // or the change stream in place of the table
	Shard   ShardID // what part of the table; the zero value is all of it
}

// String is the table's or stream's name, with the shard.
func (f FeedID) String() string {
	if f.Shard == (ShardID{}) {
		return f.TableID.String()
	}
	return f.TableID.String() + " shard " + f.Shard.Text
}

// ShardID is the value, or list of values, of the shard column to which a feed is bound.
type ShardID struct {
	Type spannerpb.TypeCode // of the shard column, STRING for a list
	Text string             // the value as Spanner's API codes it in JSON, without quotation marks; those of a list with commas between
}

// A Checkpoint is how far a feed is delivered.
type Checkpoint struct {
	// Timestamp: everything that was committed at or before it is delivered.
	Timestamp time.Time
	// Position is what else is delivered, in the feed's own words; "" if nothing is. A repository that has no place for it leaves it out:
	// then what is behind Timestamp is delivered again.
	Position string
}
