// Package cloudevents posts each change to an HTTP server as a CloudEvent (https://cloudevents.io, version 1.0). The
// data of an event is the JSON object of package jsonlines, in binary or structured content mode. A change counts as
// delivered when the server has answered its event with a status of 2xx.
//
//	type          com.github.crowfoot-db.crowfoot.change.upsert, or insert, update, delete
//	source        //spanner.googleapis.com/projects/P/instances/I/databases/D
//	subject       the table: Singers, or music.Singers
//	time          the commit timestamp
//	id            always the same for the same change, so that the receiver can detect duplicates
//	partitionkey  the table and the key: Singers{"SingerId":1}
//
// Events of one key are posted one after the other, in the order of their commits. Events of different keys are posted
// concurrently.
//
// Imports of this module: watch, watch/jsonlines.
package cloudevents

import (
	"context"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
)

// Mode is the content mode of a request:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#3-http-message-mapping.
type Mode int

const (
	// Structured sends the whole event in the body, as JSON.
	Structured Mode = iota
	// Binary sends the data in the body and the attributes in headers.
	Binary
)

// Sink is a handler that posts changes.
type Sink struct {
	URL  string
	Mode Mode
	// Header holds headers that are added to each request, such as Authorization.
	Header http.Header
	// Connections is the maximum number of concurrent requests; 0 is DefaultConnections.
	Connections int
	// Client sends the requests; nil is a client that keeps Connections connections open.
	Client *http.Client

	prepare sync.Once
	client  *http.Client

	mu sync.Mutex
	// accepted holds the ids of events that the server has accepted. A call of HandleBatch that succeeds removes the
	// ids of its events. After a call that fails, they stay, so that the next call does not post these events again.
	accepted map[string]bool
}

// DefaultConnections is the default maximum number of concurrent requests.
const DefaultConnections = 16

// Handle posts the changes of one transaction.
func (s *Sink) Handle(ctx context.Context, tx *watch.Transaction) error {
	return s.HandleBatch(ctx, []*watch.Transaction{tx})
}

// HandleBatch posts all changes and waits for the answers. After an error, the watcher calls it again with the same
// changes, and it posts only those that the server has not accepted.
func (s *Sink) HandleBatch(ctx context.Context, list []*watch.Transaction) error {
	n := s.connections()
	events, err := eventsOf(list)
	if err != nil {
		return err
	}
	lists := make([][]event, n)
	seed := maphash.MakeSeed()
	for _, e := range events {
		k := maphash.String(seed, e.partitionKey) % uint64(n)
		lists[k] = append(lists[k], e)
	}
	var all sync.WaitGroup
	failed := make([]error, n)
	for k := range lists {
		if len(lists[k]) > 0 {
			all.Go(func() { failed[k] = s.postAll(ctx, lists[k]) })
		}
	}
	all.Wait()
	if err := firstOf(failed); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		delete(s.accepted, e.id)
	}
	return nil
}

func (s *Sink) connections() int {
	if s.Connections == 0 {
		return DefaultConnections
	}
	return s.Connections
}

func eventsOf(list []*watch.Transaction) (events []event, _ error) {
	for _, tx := range list {
		for i := range tx.Changes {
			e, err := eventOf(tx, &tx.Changes[i])
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
	}
	return events, nil
}

// firstOf returns the first error of the list. If an error says that the receiver wants no more events, it returns
// that one, marked as fatal.
func firstOf(list []error) (first error) {
	for _, err := range list {
		if gone(err) {
			return watch.Fatal(err)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// postAll posts events one after the other until one fails. It skips events that the server has accepted before.
func (s *Sink) postAll(ctx context.Context, list []event) error {
	for _, e := range list {
		if s.wasAccepted(e) {
			continue
		}
		if err := s.post(ctx, e); err != nil {
			return err
		}
		s.mu.Lock()
		if s.accepted == nil {
			s.accepted = map[string]bool{}
		}
		s.accepted[e.id] = true
		s.mu.Unlock()
	}
	return nil
}

func (s *Sink) wasAccepted(e event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted[e.id]
}

const typePrefix = "com.github.crowfoot-db.crowfoot.change."

func eventOf(tx *watch.Transaction, c *watch.Change) (event, error) {
	data, err := jsonlines.AppendChange(nil, tx, c)
	if err != nil {
		return event{}, err
	}
	key, err := jsonlines.AppendRow([]byte(c.Table.String()), c.Key)
	if err != nil {
		return event{}, err
	}
	e := event{
		kind: typePrefix + strings.ToLower(c.Kind.String()), source: "//spanner.googleapis.com/" + c.Table.Database, subject: c.Table.String(),
		partitionKey: string(key), time: c.CommitTimestamp, data: data,
	}
	e.id = uuid.NewSHA1(uuid.NameSpaceURL, []byte(e.source+"/"+e.partitionKey+"@"+e.time.UTC().String()+"/"+tx.ID+"/"+c.RecordSequence)).String()
	return e, nil
}
