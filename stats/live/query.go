package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// maxOldest is how many queries Oldest lists at most.
const maxOldest = 1000

// A Query is a query that runs now. The caller owns it, and the Lists
// keep a pointer to it from Start to Finish: embed it in what the request has anyway.
type Query struct {
	SQL           string // the whole text
	Fingerprint   int64  // of the text
	Tag           string // of the request
	Start         time.Time
	Session       string
	ClientAddress string
	APIClient     string // the x-goog-api-client header
	UserAgent     string
	Priority      string // such as PRIORITY_HIGH
	Transaction   string // READ_ONLY, READ_WRITE or NONE
	// Cancel ends the query; CALL cancel_query calls it. Nil if it cannot be ended.
	Cancel context.CancelCauseFunc

	id         uint64
	list       *queryList
	prev, next *Query
}

// ErrCancelled is the cause with which cancel_query cancels.
var ErrCancelled = errors.New("query was cancelled by cancel_query")

// queries is every query that runs now, in lists that are each in order of their start.
type queries struct{ lists [stripe.Max]queryList }

type queryList struct {
	mu          sync.Mutex
	newest      uint64 // id; those of list i are i modulo stripe.Max
	first, last *Query
	_           [32]byte // so that lists do not share a cache line
}

// begin makes ids begin above those of a former process.
func (q *queries) begin(now time.Time) {
	for i := range q.lists {
		q.lists[i].newest = uint64(now.UnixNano())/stripe.Max*stripe.Max + uint64(i)
	}
}

// Start registers a query. It must be finished. Queries of change streams are not registered.
func (l *Lists) Start(q *Query) {
	if l.off {
		return
	}
	l.queries.lists[stripe.Current()].add(q)
}

func (l *queryList) add(q *Query) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest += stripe.Max
	q.id, q.list = l.newest, l
	q.prev, q.next = l.last, nil
	if l.last == nil {
		l.first = q
	} else {
		l.last.next = q
	}
	l.last = q
}

// ID is the query's id, as OLDEST_ACTIVE_QUERIES shows it and CancelQuery takes it.
func (q *Query) ID() string { return strconv.FormatUint(q.id, 10) }

// Finish takes a query off the list. It does nothing for a query that was never started, or has been finished.
func (q *Query) Finish() {
	l := q.list
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.prev == nil {
		l.first = q.next
	} else {
		q.prev.next = q.next
	}
	if q.next == nil {
		l.last = q.prev
	} else {
		q.next.prev = q.prev
	}
	q.list, q.prev, q.next = nil, nil, nil
}

// CancelQuery ends the query that OLDEST_ACTIVE_QUERIES shows with an id. It returns false if no such query runs.
func (l *Lists) CancelQuery(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return false
	}
	cancel := l.queries.lists[n%stripe.Max].cancelOf(n)
	if cancel == nil {
		return false
	}
	cancel(ErrCancelled)
	return true
}

// cancelOf is what ends a query; nil if it runs no more.
func (l *queryList) cancelOf(id uint64) context.CancelCauseFunc {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := l.first; q != nil; q = q.next {
		if q.id == id {
			return q.Cancel
		}
	}
	return nil
}

// EachQuery calls f with every query that runs now, in no order; f may copy it and must not keep the pointer.
func (l *Lists) EachQuery(f func(*Query)) {
	for i := range l.queries.lists {
		list := &l.queries.lists[i]
		list.mu.Lock()
		for q := list.first; q != nil; q = q.next {
			f(q)
		}
		list.mu.Unlock()
	}
}

// Oldest lists the oldest queries that run now, oldest first, maxOldest at most.
func (l *Lists) Oldest() []Query {
	var list []Query
	order := func(x, y Query) int { return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.id, y.id)) }
	l.EachQuery(func(q *Query) {
		list = append(list, *q)
		if len(list) >= 2*maxOldest {
			slices.SortFunc(list, order)
			list = list[:maxOldest]
		}
	})
	slices.SortFunc(list, order)
	return list[:min(len(list), maxOldest)]
}
