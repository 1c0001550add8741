// Package pubsub publishes changes to Google Pub/Sub, as the publisher of Google's Java library Spanner Change Watcher does: a message for each, whose data is
// the row in JSON or in Avro's binary encoding, with the attributes Database, Catalog, Schema, Table and Timestamp.
//
// A change is delivered when Pub/Sub has acknowledged its message. Messages have the table and the key as ordering key, so that subscriptions with message
// ordering get those of one key in the order of their commits.
//
// What a change stream has recorded is no whole row: as JSON it is the object of package jsonlines, with old and new values, and in Avro a column that was not
// recorded is null. Its messages have one more attribute, ModType: INSERT, UPDATE or DELETE.
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
	// Topic is the name of the topic for a table, an id in the client's project or projects/P/topics/T, in which %project%, %instance%, %database%, %catalog%,
	// %schema% and %table% stand for the names of the table and of what it is in.
	Topic string
	// Encode makes a message's data of a change; nil is JSON.
	Encode func(ctx context.Context, tx *watch.Transaction, c *watch.Change) ([]byte, error)
	// Create has topics made that do not exist.
	Create bool

	mu         sync.Mutex
	publishers map[string]*pubsub.Publisher // by topic
	left       []chan error                 // batches that Pub/Sub has not acknowledged when their contexts ended; each gets one error or nil
}

// JSON encodes a row that a poll has found as an object of its columns, and what a change stream has recorded as jsonlines.AppendChange does.
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

// sent is a message on its way.
type sent struct {
	publisher *pubsub.Publisher
	key       string
	result    *pubsub.PublishResult
}

// endLimit is how long Pub/Sub may take to acknowledge what is under way once the watcher is told to end. The client itself tries for a minute.
const endLimit = time.Second

// HandleBatch publishes all changes and waits until Pub/Sub has acknowledged them. After an error all have to come again.
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

// acknowledge waits until messages are acknowledged or have failed, all of them: one that was still under way when its key is resumed could overtake others.
func acknowledge(all []sent, failed error) error {
	flush(all)
	for _, message := range all {
		if _, err := message.result.Get(context.Background()); err != nil {
			message.publisher.ResumePublish(message.key) // the key's next messages were refused, so that none overtakes this one
			if failed == nil || errors.As(failed, new(pubsub.ErrPublishingPaused)) {
				failed = fmt.Errorf("publishing to %s: %w", message.publisher, err)
			}
		}
	}
	return failed
}

// leave keeps a batch whose context has ended before Pub/Sub has acknowledged it.
func (s *Sink) leave(acknowledged chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, acknowledged)
}

// awaitLeft waits until Pub/Sub has answered for batches whose contexts have ended, as that of a feed does which is read again after an error: their
// changes come again, and must not be overtaken.
func (s *Sink) awaitLeft(ctx context.Context) error {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	for _, acknowledged := range left {
		select {
		case err := <-acknowledged:
			acknowledged <- err // for other feeds that wait
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = slices.DeleteFunc(s.left, func(c chan error) bool { return slices.Contains(left, c) })
	return nil
}

// flush sends what is under way, and does not wait for more messages to send with it.
func flush(all []sent) {
	flushed := map[*pubsub.Publisher]bool{}
	for _, message := range all {
		if !flushed[message.publisher] {
			flushed[message.publisher] = true
			message.publisher.Flush()
		}
	}
}

// publish queues the message of a change.
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

// maxOrderingKey is in bytes: https://cloud.google.com/pubsub/quotas#resource_limits.
const maxOrderingKey = 1024

// orderingKey is the table and the key: Singers{"SingerId":1}, or the hash of that if it is too long.
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

// TopicOf is the topic of a table.
func TopicOf(template string, t watch.TableID) string {
	var project, instance, database string
	if part := strings.Split(t.Database, "/"); len(part) == 6 {
		project, instance, database = part[1], part[3], part[5]
	}
	return strings.NewReplacer("%project%", project, "%instance%", instance, "%database%", database,
		"%catalog%", t.Catalog, "%schema%", t.Schema, "%table%", t.Name).Replace(template)
}

// publisher returns that of a topic, which is made if it has to be.
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

// Close ends the sink. It does not wait for messages that Pub/Sub has not acknowledged when the context of their batch ended: their changes come again. The
// client stays open.
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
