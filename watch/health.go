package watch

import "time"

// Health is the current state of a watcher.
type Health struct {
	// Ready is true if there is at least one feed, every feed is Running, and none of them has an Err.
	Ready bool
	// Listed is true if the source has listed its feeds, even if there are none.
	Listed bool
	Feeds  []FeedHealth // in the order of the feeds' names
}

// FeedHealth is the current state of one feed.
type FeedHealth struct {
	Feed  FeedID
	State State
	// Err is the reason why the feed is Retrying or Failed, why its checkpoint cannot be stored, or why old commit
	// timestamps cannot be set to NULL (TableOptions.PruneAfter).
	Err error
	// Since is the time when the feed entered State, by this machine's clock.
	Since time.Time
	// Delivered is the timestamp up to which everything is delivered: every change that was committed at or before it.
	Delivered time.Time
	// Lag says how far the feed is behind the database. It is the time from Delivered to the timestamp of the newest
	// read, plus the time that has passed since that read. Both timestamps come from the database's clock; this
	// machine's clock only measures the time since the read.
	Lag time.Duration
}

// State is the state of a feed.
type State int

const (
	// Starting means that nothing has been read yet.
	Starting State = iota
	// Running means that the last read and the last call of the handler have succeeded.
	Running
	// Retrying means that the source or the handler has failed with an error that a retry may overcome.
	Retrying
	// Failed means that the source has failed with a lasting error. The feed is tried again each time the watcher
	// lists the feeds.
	Failed
	// Stopped means that the feed or Run has ended.
	Stopped
)

func (s State) String() string {
	return [...]string{"STARTING", "RUNNING", "RETRYING", "FAILED", "STOPPED"}[s]
}

// FeedMetrics counts the events of a feed since Run was called. The counts are kept when the feed disappears, and
// continue when the feed comes back.
type FeedMetrics struct {
	Feed         FeedID
	Polls        int64         // queries for new rows; a poll with several pages counts once
	Reads        int64         // pages of rows, or records of a change stream, that were read
	Rows         int64         // rows that were read
	ReadTime     time.Duration // the total time of all reads
	Transactions int64         // transactions that the handler has taken
	Changes      int64         // changes in the transactions that the handler has taken
	HandlerTime  time.Duration // the total time of all calls of the handler

	ReadFailures       int64
	HandlerFailures    int64 // calls of the handler that returned an error or panicked
	CheckpointFailures int64
	Checkpoints        int64 // checkpoints that were stored
	Pruned             int64 // rows whose commit timestamp was set to NULL
}
