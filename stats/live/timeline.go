package live

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of timelines: how many timelines are kept (the newest ones), how many events each has (the first ones), and
// how many bytes each text in an event has.
const (
	maxTimelines      = 256
	maxTimelineEvents = 64
	maxEventText      = 256
)

// EventKind is the kind of an Event.
type EventKind string

const (
	EventQuery  EventKind = "query"
	EventRead   EventKind = "read"
	EventLock   EventKind = "lock wait"
	EventCommit EventKind = "commit"
)

// An Event is one event in the timeline of a transaction.
type Event struct {
	Kind     EventKind     `json:"kind"`
	What     string        `json:"what"`              // the SQL text, the table, or the key of the lock
	At       time.Duration `json:"at"`                // when the event began: nanoseconds since the transaction began
	Duration time.Duration `json:"duration"`          // how many nanoseconds the event took
	LockWait time.Duration `json:"lockWait,omitzero"` // the part of Duration that was spent waiting for locks
	Rows     int64         `json:"rows,omitzero"`
	Error    string        `json:"error,omitempty"`
}

// Timeline is the timeline of one attempt of a transaction with a tag.
type Timeline struct {
	Tag     string        `json:"tag"`
	Begin   time.Time     `json:"begin"`
	Total   time.Duration `json:"total,omitzero"` // how many nanoseconds the attempt took; 0 while it runs
	Outcome string        `json:"outcome"`        // how the attempt ended; empty while it runs
	Events  []Event       `json:"events"`
	// Dropped is the number of events that are not in Events, because they came after the first maxTimelineEvents
	// events.
	Dropped int `json:"dropped,omitzero"`
}

// timelines holds the newest timelines in a ring buffer.
type timelines struct {
	mu   sync.Mutex
	ring [maxTimelines]*TimelineRecorder
	next int
}

// TimelineRecorder records a timeline. A transaction without a tag has a nil TimelineRecorder, whose methods do
// nothing.
type TimelineRecorder struct {
	mu sync.Mutex
	t  Timeline
}

// StartTimeline begins the timeline of a transaction. It returns nil if the transaction has no tag.
func (l *Lists) StartTimeline(tag string, begin time.Time) *TimelineRecorder {
	if tag == "" || l.off {
		return nil
	}
	r := &TimelineRecorder{t: Timeline{Tag: tag, Begin: begin}}
	l.timelines.mu.Lock()
	defer l.timelines.mu.Unlock()
	l.timelines.ring[l.timelines.next] = r
	l.timelines.next = (l.timelines.next + 1) % maxTimelines
	return r
}

// Add records an event that began at the given time.
func (r *TimelineRecorder) Add(begin time.Time, e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.t.Events) == maxTimelineEvents {
		r.t.Dropped++
		return
	}
	e.At = max(begin.Sub(r.t.Begin), 0) // the request that begins a transaction may itself begin earlier
	e.What, e.Error = own(e.What), own(e.Error)
	r.t.Events = append(r.t.Events, e)
}

// own returns a copy of the first maxEventText bytes of a text.
func own(s string) string {
	return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxEventText)], ""))
}

// Finish records the end and the outcome of the attempt.
func (r *TimelineRecorder) Finish(end time.Time, outcome string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Total, r.t.Outcome = end.Sub(r.t.Begin), outcome
}

// Timelines returns the timelines of transactions with this tag, newest first. An empty tag selects all.
func (l *Lists) Timelines(tag string) []Timeline {
	l.timelines.mu.Lock()
	defer l.timelines.mu.Unlock()
	var list []Timeline
	for i := 1; i <= maxTimelines; i++ {
		r := l.timelines.ring[(l.timelines.next-i+maxTimelines)%maxTimelines]
		if r == nil {
			break
		}
		r.mu.Lock()
		if tag == "" || r.t.Tag == tag {
			t := r.t
			t.Events = slices.Clone(t.Events)
			list = append(list, t)
		}
		r.mu.Unlock()
	}
	return list
}
