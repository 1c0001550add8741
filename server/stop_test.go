package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
)

// TestClose checks that Close ends requests that do not end by themselves: a commit over gRPC and one over REST that
// wait for a lock, a stream whose client does not read, and a watch of the server's health. Each client must get
// UNAVAILABLE.
func TestClose(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	_, err := h.sql(ses, begins(readWrite()), 1, "INSERT INTO Singers (SingerId) VALUES (1)")
	h.ok(err)

	health := grpc_health_v1.NewHealthClient(h.conn)
	watch, err := health.Watch(h.ctx, &grpc_health_v1.HealthCheckRequest{Service: "google.spanner.v1.Spanner"})
	h.ok(err)
	if m, err := watch.Recv(); err != nil || m.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("before: %v, %v", m, err)
	}
	unread, err := h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses,
		Sql: "SELECT REPEAT('x', 100000) FROM UNNEST(GENERATE_ARRAY(1, 1000)), UNNEST(GENERATE_ARRAY(1, 1000))"})
	h.ok(err)
	if _, err := unread.Recv(); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, err := h.data.Commit(h.ctx, singleUse(ses, insertSingers(list("1", "gRPC"))))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("over gRPC: %v", err)
		}
	})
	waiting.Go(func() {
		code, reply := h.http("POST", "/v1/"+ses+":commit", `{"singleUseTransaction": {"readWrite": {}},
			"mutations": [{"insertOrUpdate": {"table": "Singers", "columns": ["SingerId"], "values": [["1"]]}}]}`)
		failure, _ := reply["error"].(map[string]any)
		if code != http.StatusServiceUnavailable || failure["status"] != "UNAVAILABLE" {
			t.Errorf("over REST: %d %v", code, reply)
		}
	})
	db := h.database()
	eventually(func() bool { return db.Transactions().Metrics().Waiting == 2 })
	h.ok(h.server.Close())
	h.stop = func() { h.conn.Close(); h.server.registry.Close(); h.closeStore() }
	waiting.Wait()
	if m, err := watch.Recv(); err != nil || m.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("after: %v, %v", m, err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ends with %v", err)
	}
	for err = nil; err == nil; {
		_, err = unread.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ends with %v", err)
	}
}

// probe sends a GET to the HTTP listener and returns the status code and the body.
func (h *harness) probe(path string) (int, string) {
	h.Helper()
	code, text := h.httpRaw(http.MethodGet, path, "")
	return code, string(text)
}

// TestHealthWhileStopping checks that a stopping server answers probes over new and existing connections until the last
// request has ended, and refuses other requests. A client that only watches the health must learn of the stop before
// its connection is closed.
func TestHealthWhileStopping(t *testing.T) {
	copying, release := make(chan struct{}), make(chan struct{})
	h := newHarnessOf(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), Checkpoint: func(context.Context, string) error {
		close(copying)
		<-release
		return nil
	}})
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	h.ok(err)
	defer conn.Close()
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(h.ctx, &grpc_health_v1.HealthCheckRequest{})
	h.ok(err)
	if m, err := watch.Recv(); err != nil || m.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("before: %v, %v", m, err)
	}
	connect := func() func(path string) (int, string, bool) {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.rest, "http://"))
		h.ok(err)
		t.Cleanup(func() { c.Close() })
		from := bufio.NewReader(c)
		return func(path string) (int, string, bool) {
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			reply, err := http.ReadResponse(from, nil)
			h.ok(err)
			text, err := io.ReadAll(reply.Body)
			h.ok(err)
			return reply.StatusCode, string(text), reply.Close
		}
	}
	kept := connect()
	if code, text, _ := kept("/readyz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("before: %d %s", code, text)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if code, text := h.httpRaw(http.MethodPost, "/checkpoint?to=/copy", ""); code != http.StatusOK {
			t.Errorf("the request under way: %d %s", code, text)
		}
	})
	<-copying
	running.Go(func() { h.ok(h.server.Close()) })
	h.stop = func() { h.conn.Close(); h.server.registry.Close(); h.closeStore() }
	if m, err := watch.Recv(); err != nil || m.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("after: %v, %v", m, err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ends with %v", err)
	}
	eventually(func() bool {
		code, _ := h.httpRaw(http.MethodGet, "/v1/"+testInstance, "")
		return code != http.StatusOK
	})
	for name, ask := range map[string]func(string) (int, string, bool){"kept": kept, "new": connect()} {
		if code, text, _ := ask("/readyz"); code != http.StatusServiceUnavailable || text != "stopping\n" {
			t.Errorf("/readyz over a %s connection: %d %s", name, code, text)
		}
		if code, text, _ := ask("/healthz"); code != http.StatusOK || text != "ok\n" {
			t.Errorf("/healthz over a %s connection: %d %s", name, code, text)
		}
		if code, text, last := ask("/v1/" + testInstance); code != http.StatusServiceUnavailable || !strings.Contains(text, `"UNAVAILABLE"`) || !last {
			t.Errorf("a request over a %s connection: %d %s, the last one: %t", name, code, text, last)
		}
	}
	close(release)
	running.Wait()
}

// TestHealth: gRPC's health service lists all services, and reports that they serve until the store can no longer be
// read.
func TestHealth(t *testing.T) {
	h := newHarness(t)
	health := grpc_health_v1.NewHealthClient(h.conn)
	all, err := health.List(h.ctx, &grpc_health_v1.HealthListRequest{})
	h.ok(err)
	for _, name := range []string{
		"", "google.spanner.v1.Spanner", "google.spanner.admin.database.v1.DatabaseAdmin", "google.spanner.admin.instance.v1.InstanceAdmin", "google.longrunning.Operations",
	} {
		one, err := health.Check(h.ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || one.Status != grpc_health_v1.HealthCheckResponse_SERVING || all.Statuses[name].GetStatus() != one.Status {
			t.Errorf("%q: %v, %v; listed %v", name, one, err, all.Statuses[name])
		}
	}
	_, err = health.Check(h.ctx, &grpc_health_v1.HealthCheckRequest{Service: "none"})
	h.fails(err, codes.NotFound)
	unknown, err := health.Watch(h.ctx, &grpc_health_v1.HealthCheckRequest{Service: "none"})
	h.ok(err)
	if m, err := unknown.Recv(); err != nil || m.Status != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Errorf("a watch of no service: %v, %v", m, err)
	}
	if code, text := h.probe("/readyz"); code != http.StatusOK || text != "ok\n" {
		t.Errorf("/readyz: %d %s", code, text)
	}

	h.ok(h.server.registry.Close())
	h.closeStore()
	one, err := health.Check(h.ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil || one.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("without a store: %v, %v", one, err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, text := h.probe(path); code != http.StatusServiceUnavailable || !strings.Contains(text, "failed: ") {
			t.Errorf("%s without a store: %d %s", path, code, text)
		}
	}
}

// TestReflection: clients such as grpcurl can get services and messages from the server, in both versions of the
// reflection protocol.
func TestReflection(t *testing.T) {
	h := newHarness(t)
	stream, err := reflection.NewServerReflectionClient(h.conn).ServerReflectionInfo(h.ctx)
	h.ok(err)
	h.ok(stream.Send(&reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}))
	reply, err := stream.Recv()
	h.ok(err)
	var names []string
	for _, s := range reply.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	want := "arrow.flight.protocol.FlightService google.longrunning.Operations google.spanner.admin.database.v1.DatabaseAdmin google.spanner.admin.instance.v1.InstanceAdmin google.spanner.v1.Spanner " +
		"grpc.health.v1.Health grpc.reflection.v1.ServerReflection grpc.reflection.v1alpha.ServerReflection"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("services: %s", got)
	}
	alpha, err := h.conn.NewStream(h.ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
	h.ok(err)
	h.ok(alpha.SendMsg(&reflection.ServerReflectionRequest{ // both versions have the same messages
		MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "google.spanner.v1.Spanner.Commit"},
	}))
	file := new(reflection.ServerReflectionResponse)
	if err := alpha.RecvMsg(file); err != nil || len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("the file of Commit: %v, %v", file, err)
	}
}

// fullStore is a store whose disk is full.
type fullStore struct{ kv.Store }

func (fullStore) Writable() error { return errors.New("the disk is full") }

// TestHealthOfFullDisk: a server that serves reads but refuses writes is healthy and ready, and says why it refuses
// writes.
func TestHealthOfFullDisk(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	registry, err := database.Open(fullStore{store}, database.Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	s := &Server{registry: registry, stopping: t.Context().Done()}
	for _, ask := range []http.HandlerFunc{s.live, s.ready} {
		reply := httptest.NewRecorder()
		ask(reply, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if reply.Code != http.StatusOK || reply.Body.String() != "ok, but writes are refused: the disk is full\n" {
			t.Errorf("%d %s", reply.Code, reply.Body)
		}
	}
}
