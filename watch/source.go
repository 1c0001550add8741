package watch

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// A Source lists the feeds from which changes come.
type Source interface {
	// ID returns zero if the source never gets new feeds. Otherwise, the repository keeps under this id where the watching began, and new feeds
	// begin there.
	ID() FeedID
	// Feeds lists the feeds that exist now. The watcher asks again after each Options.DiscoveryInterval. It starts feeds that are new and stops
	// those that are no longer listed.
	Feeds(ctx context.Context) ([]Feed, error)
	// Now returns the timestamp of a strong read. A feed without a checkpoint starts after it, unless Options.Start says otherwise.
	Now(ctx context.Context) (time.Time, error)
}

// A Feed is a unit that is read, checkpointed and retried by itself: a table that is polled, or a change stream.
type Feed interface {
	ID() FeedID
	// Read gives the changes after a checkpoint to out until ctx ends, and then returns ctx's error. It returns nil if the feed has ended for
	// good. After any other error, the watcher pauses and calls Read again with the newest checkpoint that out was given.
	Read(ctx context.Context, from Checkpoint, out Sink) error
}

// A Sink takes the changes that a feed reads. Its methods may be called from several goroutines.
type Sink interface {
	// Deliver gives transactions to the handler, in their order. It returns how many of them, from the first on, the handler has taken. If these
	// are not all, it returns an error that Read must return: ctx has ended, or the handler's error is fatal.
	Deliver(ctx context.Context, list []*Transaction) (int, error)
	// Checkpoint tells the watcher what has been delivered. The watcher stores c within Options.CheckpointInterval, and when Run ends.
	Checkpoint(c Checkpoint)
	// Stored returns the newest checkpoint that the repository has.
	Stored() Checkpoint
	// Delivered tells the watcher that everything that was committed at or before until is delivered. Checkpoint does that, too.
	Delivered(until time.Time)
	// Observe counts a read of the source.
	Observe(r Reading)
	// Report logs an error that does not end Read.
	Report(err error)
}

// A Reading describes one read of the source: a page of a poll, or a record of a change stream.
type Reading struct {
	Timestamp time.Time // the timestamp at which the source was read
	Polls     int       // 1 for the first page of a poll, else 0
	Rows      int
	Duration  time.Duration // from the request to the last row
	Pruned    int           // rows whose commit timestamp was set to NULL
}

// A FeedID identifies a feed in metrics and in a Repository.
type FeedID struct {
	TableID         // or the change stream, in the place of a table
	Shard   ShardID // the part of the table; the zero value is all of it
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
	Text string             // the value in the JSON coding of Spanner's API, without quotation marks; a list has commas between
}

// A Checkpoint says how much of a feed is delivered.
type Checkpoint struct {
	// Timestamp is a commit timestamp: everything that was committed at or before it is delivered.
	Timestamp time.Time
	// Position says what else is delivered, in a format of the feed; "" if nothing is. A repository that cannot store it leaves it out: then
	// everything after Timestamp is delivered again.
	Position string
}
