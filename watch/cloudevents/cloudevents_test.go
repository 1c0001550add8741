package cloudevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/watch"
)

var at = time.Date(2026, 11, 22, 10, 0, 0, 123456000, time.UTC)

// change returns a change of the row with this key; n is the value of its column N.
func change(key string, n int) watch.Change {
	id := watch.Column{Name: "Id", Type: &sppb.Type{Code: sppb.TypeCode_STRING}}
	number := watch.Column{Name: "N", Type: &sppb.Type{Code: sppb.TypeCode_INT64}}
	return watch.Change{
		Table: watch.TableID{Database: "projects/p/instances/i/databases/d", Name: "T"}, CommitTimestamp: at.Add(time.Duration(n)),
		Key:    watch.Row{Columns: []watch.Column{id}, Values: []*structpb.Value{structpb.NewStringValue(key)}},
		Values: watch.Row{Columns: []watch.Column{id, number}, Values: []*structpb.Value{structpb.NewStringValue(key), structpb.NewStringValue(fmt.Sprint(n))}},
	}
}

func transaction(changes ...watch.Change) *watch.Transaction {
	return &watch.Transaction{CommitTimestamp: at, Changes: changes}
}

const (
	wantData = `{"commit_timestamp":"2026-11-22T10:00:00.123456Z","table_name":"T","mod_type":"UPSERT","keys":{"Id":"é \"1\""},"new_values":{"N":0}}`
	wantKey  = `T{"Id":"é \"1\""}`
)

var wantAttributes = map[string]string{
	"specversion": "1.0", "type": "com.github.crowfoot-db.crowfoot.change.upsert", "source": "//spanner.googleapis.com/projects/p/instances/i/databases/d",
	"subject": "T", "time": "2026-11-22T10:00:00.123456Z",
}

// TestModes checks that both content modes carry the same event, and that an event that is posted again has the same
// id.
func TestModes(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	s := &Sink{URL: server.URL, Header: http.Header{"Authorization": {"Bearer x"}}}
	tx := transaction(change(`é "1"`, 0))
	if err := s.Handle(context.Background(), tx); err != nil {
		t.Fatal(err)
	}
	var structured struct {
		ID, PartitionKey, DataContentType string
		Data                              json.RawMessage
	}
	attributes := map[string]any{}
	if err := errors.Join(json.Unmarshal(body, &structured), json.Unmarshal(body, &attributes)); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for name, want := range wantAttributes {
		if attributes[name] != want {
			t.Errorf("structured: %s is %v, want %s", name, attributes[name], want)
		}
	}
	if string(structured.Data) != wantData || structured.PartitionKey != wantKey || structured.DataContentType != "application/json" ||
		got.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" || got.Header.Get("Authorization") != "Bearer x" {
		t.Errorf("structured: %s with %v", body, got.Header)
	}
	s.Mode = Binary
	if err := s.Handle(context.Background(), tx); err != nil {
		t.Fatal(err)
	}
	for name, want := range wantAttributes {
		if got := got.Header.Get("Ce-" + name); got != want {
			t.Errorf("binary: %s is %s, want %s", name, got, want)
		}
	}
	if string(body) != wantData || got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Ce-Id") != structured.ID ||
		got.Header.Get("Ce-Partitionkey") != `T{%22Id%22:%22%C3%A9%20\%221\%22%22}` {
		t.Errorf("binary: %s with %v", body, got.Header)
	}
	if next, err := eventOf(tx, &watch.Change{Table: tx.Changes[0].Table, Key: tx.Changes[0].Key, CommitTimestamp: at.Add(1)}); err != nil || next.id == structured.ID {
		t.Errorf("the next change of the key has the same id, %s, %v", next.id, err)
	}
}

// answers is an HTTP transport that gives the answers that a test wants. It uses no network, so it works with a fake
// clock.
type answers func(r *http.Request) (status int, header http.Header, err error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, err := a(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("no\nroom")), Request: r}, nil
}

// TestRetries checks that the sink posts an event again while the server cannot be reached or asks to wait. The sink
// must wait as long as the server asks, but not longer than maxRetryAfter.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var came []time.Duration
		began := time.Now()
		s := &Sink{URL: "http://receiver.example/", Client: &http.Client{Transport: answers(func(*http.Request) (int, http.Header, error) {
			came = append(came, time.Since(began))
			switch len(came) {
			case 1:
				return 0, nil, errors.New("connection refused")
			case 2:
				return 503, http.Header{"Retry-After": {"7"}}, nil
			case 3:
				return 429, http.Header{"Retry-After": {"86400"}}, nil
			}
			return 204, nil, nil
		})}}
		if err := s.Handle(t.Context(), transaction(change("a", 0))); err != nil || len(came) != 4 {
			t.Fatalf("%v, after requests at %v", err, came)
		}
		if second, third := came[2]-came[1], came[3]-came[2]; second != 7*time.Second || third != maxRetryAfter {
			t.Errorf("requests at %v: pauses of %v and %v, want 7s and %v", came, second, third, maxRetryAfter)
		}
	})
}

// TestRefusals checks what happens when the receiver refuses an event. The error must contain the receiver's text. The
// sink must retry only if that may help, and must not post later events of the same key.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status, requests int
		header           http.Header
		want             string
		fatal            bool
	}{
		{500, tries, nil, "posting a change of T to http://receiver.example/: it answers 500 Internal Server Error: no room", false},
		{400, 1, nil, "it answers 400 Bad Request: no room", false},
		{410, 1, nil, "it answers 410 Gone: no room", true},
		{302, 1, http.Header{"Location": {"http://other.example/"}}, "it answers 302 Found", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			s := &Sink{URL: "http://receiver.example/", Client: &http.Client{Transport: answers(func(*http.Request) (int, http.Header, error) {
				requests++
				return c.status, c.header, nil
			})}}
			err := s.Handle(t.Context(), transaction(change("a", 0), change("a", 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) || requests != c.requests {
				t.Errorf("%d: %v after %d requests, want %d and %q", c.status, err, requests, c.requests, c.want)
			}
			if fatal := reflect.TypeOf(err) == reflect.TypeOf(watch.Fatal(err)); fatal != c.fatal {
				t.Errorf("%d: fatal is %v", c.status, fatal)
			}
		})
	}
}

// TestOrder checks that events of one key are posted one at a time and in order, while events of other keys are posted
// concurrently. It also checks that the sink follows a redirect with status 307 and posts the whole event again.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	received := map[string][]int{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		var line struct {
			Keys      struct{ ID string }
			NewValues struct{ N int } `json:"new_values"`
		}
		if err := json.NewDecoder(r.Body).Decode(&line); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		received[line.Keys.ID] = append(received[line.Keys.ID], line.NewValues.N)
	}))
	var opened atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	const keys, changes = 20, 10
	var list []*watch.Transaction
	for n := range changes {
		tx := transaction()
		for key := range keys {
			tx.Changes = append(tx.Changes, change(fmt.Sprint(key), n))
		}
		list = append(list, tx)
	}
	s := &Sink{URL: server.URL + "/", Mode: Binary}
	if err := s.HandleBatch(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	if n := opened.Load(); n > DefaultConnections {
		t.Errorf("%d connections, want at most %d", n, DefaultConnections)
	}
	if len(received) != keys {
		t.Errorf("%d keys, want %d", len(received), keys)
	}
	for key, got := range received {
		for n := range changes {
			if len(got) != changes || got[n] != n {
				t.Errorf("key %s: %v", key, got)
				break
			}
		}
	}
}

// TestTakenOnce checks that events that the receiver has accepted are not posted again when their batch comes again.
// Events of the same rows in a new batch must be posted.
func TestTakenOnce(t *testing.T) {
	posted := map[string]int{}
	refuse := true
	s := &Sink{URL: "http://receiver.example/", Mode: Binary, Connections: 1, Client: &http.Client{Transport: answers(func(r *http.Request) (int, http.Header, error) {
		if key := r.Header.Get("Ce-Partitionkey"); refuse && strings.Contains(key, "bad") {
			return 400, nil, nil
		}
		posted[r.Header.Get("Ce-Partitionkey")]++
		return 200, nil, nil
	})}}
	tx := transaction(change("a", 0), change("bad", 0), change("c", 0))
	for range 3 {
		if err := s.Handle(t.Context(), tx); err == nil {
			t.Error("the batch is taken")
		}
	}
	refuse = false
	for n := 1; n <= 2; n++ {
		if err := s.Handle(t.Context(), tx); err != nil {
			t.Error(err)
		}
		if a, bad, c := posted[`T{%22Id%22:%22a%22}`], posted[`T{%22Id%22:%22bad%22}`], posted[`T{%22Id%22:%22c%22}`]; a != n || bad != n || c != n {
			t.Errorf("after batch %d: %v", n, posted)
		}
	}
}

// TestEnd checks that the sink does not wait for the receiver's answer when the watcher must end.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &Sink{URL: "http://receiver.example/", Client: &http.Client{Transport: answers(func(r *http.Request) (int, http.Header, error) {
			cancel()
			<-r.Context().Done()
			return 0, nil, r.Context().Err()
		})}}
		if err := s.Handle(ctx, transaction(change("a", 0))); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
