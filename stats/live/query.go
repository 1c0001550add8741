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

// maxOldest is how many queries Oldest returns at most.
const maxOldest = 1000

// A Query is a running query. The caller owns it, but Lists points to it from Start to Finish. To save an allocation,
// embed it in the state of the request.
type Query struct {
	SQL           string // the whole SQL text
	Fingerprint   int64  // fingerprint of the SQL text
	Tag           string // tag of the request
	Start         time.Time
	Session       string
	ClientAddress string
	APIClient     string // the x-goog-api-client header
	UserAgent     string
	Priority      string // such as PRIORITY_HIGH
	Transaction   string // READ_ONLY, READ_WRITE or NONE
	// Cancel cancels the query; CALL cancel_query calls this function. It is nil if users cannot cancel the query.
	Cancel context.CancelCauseFunc

	id         uint64
	list       *queryList
	prev, next *Query
}

// ErrCancelled is the cause that cancel_query passes to Query.Cancel.
var ErrCancelled = errors.New("query was cancelled by cancel_query")

// queries holds all running queries, in one list per stripe. Each list is sorted by the time of Start.
type queries struct{ lists [stripe.Max]queryList }

type queryList struct {
	mu          sync.Mutex
	newest      uint64 // highest id in the list so far; ids of list i are i modulo stripe.Max
	first, last *Query
	_           [32]byte // keeps different lists in different cache lines
}

// begin makes the ids of queries start above those of an earlier process.
func (q *queries) begin(now time.Time) {
	for i := range q.lists {
		q.lists[i].newest = uint64(now.UnixNano())/stripe.Max*stripe.Max + uint64(i)
	}
}

// Start adds a query to the list of running queries. The caller must call Finish. Callers do not add queries of change
// streams, because Spanner does not list these as active queries:
// https://cloud.google.com/spanner/docs/introspection/oldest-active-queries.
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

// ID returns the query's id in the form that OLDEST_ACTIVE_QUERIES shows and CancelQuery takes.
func (q *Query) ID() string { return strconv.FormatUint(q.id, 10) }

// Finish removes the query from the list. It does nothing for a query that was never started or that has finished.
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

// CancelQuery cancels the query with the id that OLDEST_ACTIVE_QUERIES shows. It returns false if no such query runs,
// or the query cannot be cancelled.
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

// cancelOf returns the Cancel function of the query with this id, or nil if the query no longer runs or has none.
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

// EachQuery calls f with every running query, in no order. f may copy the query but must not keep the pointer.
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

// Oldest returns the running queries, the oldest first, but at most maxOldest.
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
