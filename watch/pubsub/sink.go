// Package pubsub publishes changes to Google Pub/Sub, as the publisher of Google's Java library Spanner Change Watcher
// does. Each change becomes a message. Its data is the row in JSON or in Avro's binary encoding, and its attributes are
// Database, Catalog, Schema, Table and Timestamp.
//
// A change counts as delivered when Pub/Sub has acknowledged its message. The ordering key of a message is the table
// and the row's key, so that subscriptions with message ordering get the changes of one key in the order of their
// commits.
//
// A record of a change stream need not have all columns of a row. In JSON the record is the object that package
// jsonlines writes, with old and new values. In Avro, a column that was not recorded is null. The message of a change
// stream record has one more attribute, ModType, which is INSERT, UPDATE or DELETE.
//
// Imports of this module: watch, watch/jsonlines.
package pubsub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
)

// Sink is a handler that publishes changes.
type Sink struct {
	Client *pubsub.Client
	// Topic is the name of the topic for a table: an id in the client's project or projects/P/topics/T. In the name,
	// %project%, %instance%, %database%, %catalog%, %schema% and %table% are replaced by the parts of the table's full
	// name.
	Topic string
	// Encode returns the message data of a change. nil means the function JSON.
	Encode func(ctx context.Context, tx *watch.Transaction, c *watch.Change) ([]byte, error)
	// Create makes the sink create topics that do not exist.
	Create bool

	mu         sync.Mutex
	publishers map[string]*pubsub.Publisher // by topic
	left       []chan error                 // the results of batches that were unacknowledged when their contexts ended
}

// JSON encodes a change as JSON. A polled row becomes an object with its columns. A record of a change stream becomes
// the object that jsonlines.AppendChange writes.
func JSON(_ context.Context, tx *watch.Transaction, c *watch.Change) ([]byte, error) {
	if c.Kind == watch.Upsert {
		return jsonlines.AppendRow(nil, c.Values)
	}
	return jsonlines.AppendChange(nil, tx, c)
}

// Handle publishes the changes of one transaction.
func (s *Sink) Handle(ctx context.Context, tx *watch.Transaction) error {
	return s.HandleBatch(ctx, []*watch.Transaction{tx})
}

// sent is a message that was given to the client and whose result is not known yet.
type sent struct {
	publisher *pubsub.Publisher
	key       string
	result    *pubsub.PublishResult
}

// endLimit is how long HandleBatch waits for Pub/Sub's acknowledgements after its context has ended. (The Pub/Sub
// client itself retries for a minute.)
const endLimit = time.Second

// HandleBatch publishes all changes and waits until Pub/Sub has acknowledged them. After an error, the caller must
// call it again with all changes.
func (s *Sink) HandleBatch(ctx context.Context, list []*watch.Transaction) error {
	if err := s.awaitLeft(ctx); err != nil {
		return err
	}
	var all []sent
	var failed error
	for _, tx := range list {
		for i := range tx.Changes {
			if failed != nil {
				break
			}
			var message sent
			if message, failed = s.publish(ctx, tx, &tx.Changes[i]); failed == nil {
				all = append(all, message)
			}
		}
	}
	acknowledged := make(chan error, 1)
	go func() { acknowledged <- acknowledge(all, failed) }()
	select {
	case err := <-acknowledged:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-acknowledged:
		return err
	case <-time.After(endLimit):
		s.leave(acknowledged)
		return ctx.Err()
	}
}

// acknowledge waits until every message is acknowledged or has failed. It does not return at the first failure.
// Otherwise the next call could resume publishing for a key while messages of this call are still queued, and Pub/Sub
// could get a message before earlier messages of the same key.
func acknowledge(all []sent, failed error) error {
	flush(all)
	for _, message := range all {
		if _, err := message.result.Get(context.Background()); err != nil {
			message.publisher.ResumePublish(message.key) // the client has refused later messages of the key, so none was published before this one
			if failed == nil || errors.As(failed, new(pubsub.ErrPublishingPaused)) {
				failed = fmt.Errorf("publishing to %s: %w", message.publisher, err)
			}
		}
	}
	return failed
}

// leave records a batch that Pub/Sub had not acknowledged when the batch's context ended.
func (s *Sink) leave(acknowledged chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, acknowledged)
}

// awaitLeft waits until Pub/Sub has answered for the batches that leave has recorded. The context of a batch ends, for
// example, when a feed is read again after an error. The changes of these batches come again, and their old messages
// must not be published after the new ones.
func (s *Sink) awaitLeft(ctx context.Context) error {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	for _, acknowledged := range left {
		select {
		case err := <-acknowledged:
			acknowledged <- err // for other calls of awaitLeft that wait for this batch
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = slices.DeleteFunc(s.left, func(c chan error) bool { return slices.Contains(left, c) })
	return nil
}

// flush makes the publishers send their queued messages at once, instead of waiting for more messages to send with
// them.
func flush(all []sent) {
	flushed := map[*pubsub.Publisher]bool{}
	for _, message := range all {
		if !flushed[message.publisher] {
			flushed[message.publisher] = true
			message.publisher.Flush()
		}
	}
}

// publish gives the message of a change to its topic's publisher, which queues it.
func (s *Sink) publish(ctx context.Context, tx *watch.Transaction, c *watch.Change) (sent, error) {
	encode := s.Encode
	if encode == nil {
		encode = JSON
	}
	data, err := encode(ctx, tx, c)
	if err != nil {
		return sent{}, fmt.Errorf("table %s: %w", c.Table, err)
	}
	key, err := orderingKey(c)
	if err != nil {
		return sent{}, err
	}
	publisher, err := s.publisher(ctx, TopicOf(s.Topic, c.Table))
	if err != nil {
		return sent{}, err
	}
	message := &pubsub.Message{Data: data, Attributes: attributes(c), OrderingKey: key}
	return sent{publisher, key, publisher.Publish(ctx, message)}, nil
}

func attributes(c *watch.Change) map[string]string {
	list := map[string]string{
		"Database":  c.Table.Database,
		"Catalog":   c.Table.Catalog,
		"Schema":    c.Table.Schema,
		"Table":     c.Table.Name,
		"Timestamp": c.CommitTimestamp.UTC().Format(time.RFC3339Nano),
	}
	if c.Kind != watch.Upsert {
		list["ModType"] = c.Kind.String()
	}
	return list
}

// maxOrderingKey is the maximum length of an ordering key in bytes:
// https://cloud.google.com/pubsub/quotas#resource_limits.
const maxOrderingKey = 1024

// orderingKey returns the table and the key as text, such as Singers{"SingerId":1}. If the text is too long, it
// returns the text's SHA-256 in hex.
func orderingKey(c *watch.Change) (string, error) {
	key, err := jsonlines.AppendRow([]byte(c.Table.String()), c.Key)
	if err != nil {
		return "", err
	}
	if len(key) > maxOrderingKey {
		hash := sha256.Sum256(key)
		return hex.EncodeToString(hash[:]), nil
	}
	return string(key), nil
}

// TopicOf returns the topic of a table. template is a name as in Sink.Topic.
func TopicOf(template string, t watch.TableID) string {
	var project, instance, database string
	if part := strings.Split(t.Database, "/"); len(part) == 6 {
		project, instance, database = part[1], part[3], part[5]
	}
	return strings.NewReplacer("%project%", project, "%instance%", instance, "%database%", database,
		"%catalog%", t.Catalog, "%schema%", t.Schema, "%table%", t.Name).Replace(template)
}

// publisher returns the publisher of a topic. It creates the topic if Create is set.
func (s *Sink) publisher(ctx context.Context, topic string) (*pubsub.Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.publishers[topic]; ok {
		return p, nil
	}
	name := topic
	if !strings.HasPrefix(topic, "projects/") {
		name = "projects/" + s.Client.Project() + "/topics/" + topic
	}
	if s.Create {
		_, err := s.Client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: name})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return nil, fmt.Errorf("creating topic %s: %w", name, err)
		}
	}
	p := s.Client.Publisher(name)
	p.EnableMessageOrdering = true
	if s.publishers == nil {
		s.publishers = map[string]*pubsub.Publisher{}
	}
	s.publishers[topic] = p
	return p, nil
}

// Close stops the publishers but does not close the client. If the context of a batch ended before Pub/Sub had
// acknowledged the batch, Close does not wait for its messages, because their changes come again.
func (s *Sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.publishers {
		if len(s.left) > 0 {
			go p.Stop()
		} else {
			p.Stop()
		}
	}
}
