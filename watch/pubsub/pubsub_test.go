package pubsub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
)

var at = time.Date(2026, 11, 22, 10, 0, 0, 123456000, time.UTC)

// fake starts Google's fake Pub/Sub server and returns a client for it.
func fake(t *testing.T, options ...pstest.ServerReactorOption) (*pstest.Server, *pubsub.Client) {
	t.Helper()
	server := pstest.NewServer(options...)
	t.Cleanup(func() { server.Close() })
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Addr)
	client, err := pubsub.NewClient(context.Background(), "other", option.WithUserAgent("test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return server, client
}

// change returns a change of the row with this key; n is the value of its column N.
func change(table, key string, n int) watch.Change {
	id := watch.Column{Name: "Id", Type: &sppb.Type{Code: sppb.TypeCode_STRING}}
	number := watch.Column{Name: "N", Type: &sppb.Type{Code: sppb.TypeCode_INT64}}
	return watch.Change{
		Table: watch.TableID{Database: "projects/p/instances/i/databases/d", Schema: "music", Name: table}, CommitTimestamp: at,
		Key:    watch.Row{Columns: []watch.Column{id}, Values: []*structpb.Value{structpb.NewStringValue(key)}},
		Values: watch.Row{Columns: []watch.Column{id, number}, Values: []*structpb.Value{structpb.NewStringValue(key), structpb.NewStringValue(fmt.Sprint(n))}},
	}
}

// TestPublish checks that messages have the data, attributes and ordering keys that the package comment describes, and
// the topics that the comment of Sink.Topic describes.
func TestPublish(t *testing.T) {
	server, client := fake(t)
	s := &Sink{Client: client, Topic: "spanner-%project%-%instance%-%database%-%catalog%-%schema%-%table%", Create: true}
	defer s.Close()
	tx := &watch.Transaction{CommitTimestamp: at, Changes: []watch.Change{change("A", "x", 1), change("B", strings.Repeat("y", 2000), 2)}}
	tx.Changes[1].Kind = watch.Delete
	if err := s.Handle(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	byTable := map[string]*pstest.Message{}
	for _, m := range server.Messages() {
		byTable[m.Attributes["Table"]] = m
	}
	a, b := byTable["A"], byTable["B"]
	if a == nil || b == nil || len(byTable) != 2 {
		t.Fatalf("messages %v", server.Messages())
	}
	want := map[string]string{"Database": "projects/p/instances/i/databases/d", "Catalog": "", "Schema": "music", "Table": "A", "Timestamp": "2026-11-22T10:00:00.123456Z"}
	if string(a.Data) != `{"Id":"x","N":1}` || !maps.Equal(a.Attributes, want) || a.OrderingKey != `music.A{"Id":"x"}` || a.Topic != "projects/other/topics/spanner-p-i-d--music-A" {
		t.Errorf("data %s, attributes %v, key %s, topic %s", a.Data, a.Attributes, a.OrderingKey, a.Topic)
	}
	if b.Attributes["ModType"] != "DELETE" || !strings.Contains(string(b.Data), `"mod_type":"DELETE"`) || len(b.OrderingKey) != 64 {
		t.Errorf("of a change stream: data %s, attributes %v, key %s", b.Data, b.Attributes, b.OrderingKey)
	}
}

// full makes the fake server refuse messages of rows whose key is "5" or greater, while the field refuse is true. The
// client does not retry after the error.
type full struct{ refuse *atomic.Bool }

func (f full) React(request any) (handled bool, reply any, err error) {
	r := request.(*pubsubpb.PublishRequest)
	if f.refuse.Load() && r.Messages[0].OrderingKey >= `music.A{"Id":"5"}` {
		return true, nil, status.Error(codes.FailedPrecondition, "the disk is full")
	}
	return false, nil, nil
}

// TestOrder checks that messages of one key are published in order, even if Pub/Sub refuses some for a while. The
// handler must return nil only when all messages are acknowledged.
func TestOrder(t *testing.T) {
	var refuse atomic.Bool
	refuse.Store(true)
	server, client := fake(t, pstest.ServerReactorOption{FuncName: "Publish", Reactor: full{&refuse}})
	s := &Sink{Client: client, Topic: "projects/p/topics/changes", Create: true}
	defer s.Close()
	const keys, changes = 10, 20
	var list []*watch.Transaction
	for n := range changes {
		tx := new(watch.Transaction)
		for key := range keys {
			tx.Changes = append(tx.Changes, change("A", fmt.Sprint(key), n))
		}
		list = append(list, tx)
	}
	if err := s.HandleBatch(t.Context(), list); err == nil || !strings.Contains(err.Error(), "publishing to projects/p/topics/changes: ") {
		t.Errorf("%v, want an error that names the topic", err)
	}
	refuse.Store(false)
	if err := s.HandleBatch(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := server.Messages()[keys/2*changes:] // in the first call, Pub/Sub has accepted the messages of half of the keys
	next := map[string]int{}
	for _, m := range all {
		if want := fmt.Sprintf(`{"Id":%q,"N":%d}`, strings.Split(m.OrderingKey, `"`)[3], next[m.OrderingKey]); string(m.Data) != want {
			t.Fatalf("%s, want %s", m.Data, want)
		}
		next[m.OrderingKey]++
	}
	for key, n := range next {
		if n != changes {
			t.Errorf("%d messages of %s, want %d", n, key, changes)
		}
	}
}

// TestRefused checks that the handler returns the error if a topic cannot be created or does not exist, or if an
// encoder fails. No message may be published then.
func TestRefused(t *testing.T) {
	server, client := fake(t, pstest.WithErrorInjection("CreateTopic", codes.PermissionDenied, "not yours"))
	tx := &watch.Transaction{Changes: []watch.Change{change("A", "x", 1)}}
	for _, c := range []struct {
		sink *Sink
		want string
	}{
		{&Sink{Client: client, Topic: "new", Create: true}, "creating topic projects/other/topics/new: "},
		{&Sink{Client: client, Topic: "none"}, "publishing to projects/other/topics/none: "},
		{&Sink{Client: client, Topic: "new", Encode: func(context.Context, *watch.Transaction, *watch.Change) ([]byte, error) {
			return nil, errors.New("no schema")
		}}, "table music.A: no schema"},
	} {
		if err := c.sink.Handle(t.Context(), tx); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		c.sink.Close()
	}
	if n := len(server.Messages()); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// stalledServer is a Pub/Sub server that answers no request until the channel back is closed.
type stalledServer struct {
	asked chan struct{}
	back  chan struct{}
}

func (a stalledServer) React(any) (handled bool, reply any, err error) {
	select {
	case a.asked <- struct{}{}:
	default:
	}
	<-a.back
	return false, nil, nil
}

// TestAway checks that the handler returns if its context ends while Pub/Sub does not answer. If the batch then comes
// again, as when a feed is read again after an error, the second call must wait for the result of the first one.
func TestAway(t *testing.T) {
	a := stalledServer{make(chan struct{}, 1), make(chan struct{})}
	server, client := fake(t, pstest.ServerReactorOption{FuncName: "Publish", Reactor: a})
	s := &Sink{Client: client, Topic: "changes", Create: true}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	handle := func(ctx context.Context) {
		result <- s.Handle(ctx, &watch.Transaction{Changes: []watch.Change{change("A", "x", 1)}})
	}
	go handle(ctx)
	<-a.asked
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	go handle(t.Context())
	close(a.back)
	if err := <-result; err != nil {
		t.Error(err)
	}
	for _, m := range server.Messages() {
		if m.OrderingKey != `music.A{"Id":"x"}` {
			t.Errorf("message %v", m)
		}
	}
	if n := len(server.Messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
	s.Close()
}

// TestCloseWhileAway checks that Close does not wait if Pub/Sub does not answer.
func TestCloseWhileAway(t *testing.T) {
	a := stalledServer{make(chan struct{}, 1), make(chan struct{})}
	_, client := fake(t, pstest.ServerReactorOption{FuncName: "Publish", Reactor: a})
	defer close(a.back) // must run before the fake server is closed
	s := &Sink{Client: client, Topic: "changes", Create: true}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		result <- s.Handle(ctx, &watch.Transaction{Changes: []watch.Change{change("A", "x", 1)}})
	}()
	<-a.asked
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Close()
}
