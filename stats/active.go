package stats

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// maxOldest is how many rows OLDEST_ACTIVE_QUERIES has at most.
const maxOldest = 1000

// An ActiveQuery is a query that runs now. The caller owns it, and the Collector
// keeps a pointer to it from Start to Finish: embed it in what the request has anyway.
type ActiveQuery struct {
	Text          Text
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
	list       *activeList
	prev, next *ActiveQuery
}

// ErrCancelled is the cause with which cancel_query cancels.
var ErrCancelled = errors.New("query was cancelled by cancel_query")

// active is every query that runs now, in lists that are each in order of their start.
type active struct{ lists [maxShards]activeList }

type activeList struct {
	mu          sync.Mutex
	newest      uint64 // id; those of list i are i modulo maxShards
	first, last *ActiveQuery
	_           [32]byte // so that lists do not share a cache line
}

// begin makes ids begin above those of a former process.
func (a *active) begin(now time.Time) {
	for i := range a.lists {
		a.lists[i].newest = uint64(now.UnixNano())/maxShards*maxShards + uint64(i)
	}
}

// Start registers a query. It must be finished. Queries of change streams are not registered.
func (c *Collector) Start(q *ActiveQuery) {
	if c.cfg.Off {
		return
	}
	l := &c.active.lists[stripe()]
	q.list = l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest += maxShards
	q.id = l.newest
	q.prev, q.next = l.last, nil
	if l.last == nil {
		l.first = q
	} else {
		l.last.next = q
	}
	l.last = q
}

// Finish takes a query out. More than once is once; one that was never started is none.
func (q *ActiveQuery) Finish() {
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

// CancelQuery ends the query that OLDEST_ACTIVE_QUERIES shows with an id. False is that there is none.
func (c *Collector) CancelQuery(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return false
	}
	cancel := c.active.lists[n%maxShards].cancelOf(n)
	if cancel == nil {
		return false
	}
	cancel(ErrCancelled)
	return true
}

// cancelOf is what ends a query; nil if it runs no more.
func (l *activeList) cancelOf(id uint64) context.CancelCauseFunc {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := l.first; q != nil; q = q.next {
		if q.id == id {
			return q.Cancel
		}
	}
	return nil
}

// each calls f with every active query; f keeps nothing of it but copies.
func (a *active) each(f func(*ActiveQuery)) {
	for i := range a.lists {
		l := &a.lists[i]
		l.mu.Lock()
		for q := l.first; q != nil; q = q.next {
			f(q)
		}
		l.mu.Unlock()
	}
}

// oldest lists the oldest queries first.
func (a *active) oldest() []ActiveQuery {
	var list []ActiveQuery
	order := func(x, y ActiveQuery) int { return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.id, y.id)) }
	a.each(func(q *ActiveQuery) {
		list = append(list, *q)
		if len(list) >= 2*maxOldest {
			slices.SortFunc(list, order)
			list = list[:maxOldest]
		}
	})
	slices.SortFunc(list, order)
	return list[:min(len(list), maxOldest)]
}

var oldestColumns = []plainColumn{
	{"START_TIME", value.TimestampType}, {"TEXT_FINGERPRINT", value.Int64Type}, {"TEXT", value.StringType},
	{"TEXT_TRUNCATED", value.BoolType}, {"SESSION_ID", value.StringType}, {"QUERY_ID", value.StringType},
	{"CLIENT_IP_ADDRESS", value.StringType}, {"API_CLIENT_HEADER", value.StringType}, {"USER_AGENT_HEADER", value.StringType},
	{"SERVER_REGION", value.StringType}, {"PRIORITY", value.StringType}, {"TRANSACTION_TYPE", value.StringType},
}

func (c *Collector) oldestRows() [][]value.Value {
	var rows [][]value.Value
	for _, q := range c.active.oldest() {
		shown := cut(q.Text.SQL, maxText)
		rows = append(rows, []value.Value{
			value.OfTime(q.Start),
			value.OfInt64(fingerprintOf(Tag(q.Tag), q.Text.Fingerprint)),
			value.OfString(shown),
			value.OfBool(len(shown) < len(q.Text.SQL)),
			value.OfString(q.Session),
			value.OfString(strconv.FormatUint(q.id, 10)),
			stringOrNull(q.ClientAddress),
			stringOrNull(q.APIClient),
			stringOrNull(q.UserAgent),
			value.Null(value.String), // there are no regions
			stringOrNull(q.Priority),
			stringOrNull(q.Transaction),
		})
	}
	return rows
}

var summaryColumns = []plainColumn{
	{"ACTIVE_COUNT", value.Int64Type}, {"OLDEST_START_TIME", value.TimestampType}, {"COUNT_OLDER_THAN_1S", value.Int64Type},
	{"COUNT_OLDER_THAN_10S", value.Int64Type}, {"COUNT_OLDER_THAN_100S", value.Int64Type},
}

func (c *Collector) summaryRows() [][]value.Value {
	now := c.cfg.Clock()
	var count int64
	var older [3]int64
	oldest := value.Null(value.Timestamp)
	var first time.Time
	c.active.each(func(q *ActiveQuery) {
		if count++; count == 1 || q.Start.Before(first) {
			first = q.Start
			oldest = value.OfTime(first)
		}
		for i, limit := range [...]time.Duration{time.Second, 10 * time.Second, 100 * time.Second} {
			if now.Sub(q.Start) > limit {
				older[i]++
			}
		}
	})
	return [][]value.Value{{value.OfInt64(count), oldest, value.OfInt64(older[0]), value.OfInt64(older[1]), value.OfInt64(older[2])}}
}

func stringOrNull(s string) value.Value {
	if s == "" {
		return value.Null(value.String)
	}
	return value.OfString(s)
}
