package watch

import "time"

// Health is what a watcher is doing now.
type Health struct {
	// Ready says that every feed has been read and none is failing.
	Ready bool
	// Listed says that the source has answered which feeds there are, even if there are none.
	Listed bool
	Feeds  []FeedHealth // in the order of their names
}

// FeedHealth is how one feed does.
type FeedHealth struct {
	Feed  FeedID
	State State
	// Err is why the feed is Retrying or Failed, or why its checkpoint cannot be stored.
	Err error
	// Since is when it has entered State, by this machine's clock.
	Since time.Time
	// Delivered: everything that was committed at or before it is delivered.
	Delivered time.Time
	// Lag is by how much the database is ahead of Delivered: from Delivered to the timestamp of the newest read, and from that read until now. Both
	// timestamps are the database's: this machine's clock only measures how long ago the read was.
	Lag time.Duration
}

// State is what a feed is in.
type State int

const (
	// Starting: nothing has been read yet.
	Starting State = iota
	// Running: the last read was good, and so was the last call of the handler.
	Running
	// Retrying: the source or the handler has failed with an error that may pass.
	Retrying
	// Failed: the source has failed with an error that does not pass by itself. The feed is tried again with each discovery.
	Failed
	// Stopped: Run has ended.
	Stopped
)

func (s State) String() string {
	return [...]string{"STARTING", "RUNNING", "RETRYING", "FAILED", "STOPPED"}[s]
}

// FeedMetrics are counts since Run was called. They stay when the feed is gone, and go on when it comes back.
type FeedMetrics struct {
	Feed         FeedID
	Polls        int64         // queries for new rows; one that takes several pages counts once
	Reads        int64         // pages, or records of a change stream
	Rows         int64         // that were read
	ReadTime     time.Duration // of all reads
	Transactions int64         // that the handler has taken
	Changes      int64         // of these
	HandlerTime  time.Duration // of all calls

	ReadFailures       int64
	HandlerFailures    int64 // errors and panics
	CheckpointFailures int64
	Checkpoints        int64 // that were stored
	Pruned             int64 // rows whose commit timestamp was set to NULL
}
