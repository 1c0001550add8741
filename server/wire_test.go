package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/server/listener"
)

// This file tests limits on connections and requests. Its client writes the bytes of the protocol itself, and no test
// sets options of a library, so the tests hold for any implementation of the transport.

// wire is a connection that reads and writes single HTTP/2 frames.
type wire struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer // encoded headers of the request being written
	coder  *hpack.Encoder
	mu     sync.Mutex // guards writing to conn

	answers map[uint32]http2.MetaHeadersFrame // last headers of each stream; only the method answered uses this map
}

// newWire sends the client's preface of HTTP/2 on a connection.
func newWire(t *testing.T, conn net.Conn) *wire {
	t.Helper()
	w := &wire{t: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	w.coder = hpack.NewEncoder(&w.block)
	w.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	w.mu.Lock()
	go func() { // in the background, because a pipe has no buffer and the write waits for the reader
		defer w.mu.Unlock()
		_, _ = io.WriteString(conn, http2.ClientPreface)
		_ = w.framer.WriteSettings()
	}()
	return w
}

// headers sends the headers that begin a request for a method of google.spanner.v1.Spanner. extra holds names and
// values of further headers.
func (w *wire) headers(stream uint32, method string, extra ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.block.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", "/google.spanner.v1.Spanner/" + method, ":authority", "localhost",
		"content-type", "application/grpc", "te", "trailers"}, extra...)
	for i := 0; i < len(fields); i += 2 {
		_ = w.coder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	const frame = 16 << 10
	block := bytes.Clone(w.block.Bytes())
	first := block[:min(len(block), frame)]
	err := w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(first) == len(block)})
	for rest := block[len(first):]; err == nil && len(rest) > 0; {
		n := min(len(rest), frame)
		err = w.framer.WriteContinuation(stream, n == len(rest), rest[:n])
		rest = rest[n:]
	}
	return err
}

// next reads frames until want returns true for one of them, and returns this frame. Meanwhile it answers pings and
// settings, as every client does.
func (w *wire) next(want func(http2.Frame) bool) (http2.Frame, error) {
	for {
		f, err := w.framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		w.acknowledge(f)
		if want(f) {
			return f, nil
		}
	}
}

func (w *wire) acknowledge(f http2.Frame) {
	switch f := f.(type) {
	case *http2.PingFrame:
		if !f.IsAck() {
			data := f.Data
			go func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				_ = w.framer.WritePing(true, data)
			}()
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			go func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				_ = w.framer.WriteSettingsAck()
			}()
		}
	}
}

func isGoAway(f http2.Frame) bool { _, ok := f.(*http2.GoAwayFrame); return ok }

// dial connects to an address of the harness.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestTooManyConnections: if the listener has as many connections as it may have, a client that connects gets the
// reason. When a connection ends, another client can connect.
func TestTooManyConnections(t *testing.T) {
	h := newHarnessOf(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), Descriptors: 15}) // at most 11 connections for gRPC, 2 for HTTP
	var open []net.Conn
	for range 10 { // ten, because the harness has one connection too
		w := newWire(t, dial(t, h.address))
		if _, err := w.next(func(f http2.Frame) bool { return true }); err != nil {
			t.Fatal(err)
		}
		open = append(open, w.conn)
	}
	h.session(true) // the harness connects at this first request
	f, err := newWire(t, dial(t, h.address)).next(isGoAway)
	if err != nil {
		t.Fatal(err)
	}
	if goAway := f.(*http2.GoAwayFrame); string(goAway.DebugData()) != "too many connections: the server takes at most 11" {
		t.Errorf("refused with %q", goAway.DebugData())
	}
	open[0].Close()
	eventually(func() bool { return h.server.counts["grpc"].Open() == 10 })
	if _, err := newWire(t, dial(t, h.address)).next(func(f http2.Frame) bool { _, ok := f.(*http2.SettingsFrame); return ok }); err != nil {
		t.Errorf("no room after a connection was closed: %v", err)
	}

	rest := strings.TrimPrefix(h.rest, "http://")
	idle := []net.Conn{dial(t, rest), dial(t, rest)}
	eventually(func() bool { return h.server.counts["http"].Open() == 2 })
	reply, err := io.ReadAll(dial(t, rest))
	if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 503 ") || !strings.Contains(string(reply), "too many connections") {
		t.Errorf("refused with %q, %v", reply, err)
	}
	idle[0].Close()
	eventually(func() bool { return h.server.counts["http"].Open() == 1 })
	if status, _ := h.get("/healthz"); status != http.StatusOK {
		t.Errorf("no room after a connection was closed: %d", status)
	}
}

// get sends a GET to the HTTP listener, and returns the status and the body of the reply.
func (h *harness) get(path string) (status int, body string) {
	h.Helper()
	reply, err := http.Get(h.rest + path)
	h.ok(err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	h.ok(err)
	return reply.StatusCode, string(data)
}

// TestTooManyStreams: if a client begins more requests on a connection than allowed, the server refuses those beyond
// the limit.
func TestTooManyStreams(t *testing.T) {
	h := newHarness(t)
	w := newWire(t, dial(t, h.address))
	f, err := w.next(func(f http2.Frame) bool { _, ok := f.(*http2.SettingsFrame); return ok })
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := f.(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams); !ok || n != listener.MaxStreams {
		t.Errorf("the server announces %d streams", n)
	}
	for i := range uint32(listener.MaxStreams + 1) {
		if err := w.headers(2*i+1, "CreateSession"); err != nil {
			t.Fatal(err)
		}
	}
	f, err = w.next(func(f http2.Frame) bool { _, ok := f.(*http2.RSTStreamFrame); return ok })
	if err != nil {
		t.Fatal(err)
	}
	if r := f.(*http2.RSTStreamFrame); r.StreamID != 2*listener.MaxStreams+1 || r.ErrCode != http2.ErrCodeRefusedStream {
		t.Errorf("stream %d was reset with %v", r.StreamID, r.ErrCode)
	}
	h.session(true) // checks that other clients are served
}

// TestLongHeaders: headers beyond the limit are refused, and the server serves other requests afterwards.
func TestLongHeaders(t *testing.T) {
	h := newHarness(t)
	long := strings.Repeat("x", 2*listener.MaxHeaderBytes)
	w := newWire(t, dial(t, h.address))
	_ = w.headers(1, "CreateSession", "x-long", long) // fails if the server has closed the connection meanwhile
	f, err := w.next(func(f http2.Frame) bool {
		switch f.(type) {
		case *http2.RSTStreamFrame, *http2.GoAwayFrame, *http2.MetaHeadersFrame:
			return true
		}
		return false
	})
	if _, answered := f.(*http2.MetaHeadersFrame); answered {
		t.Errorf("a request with %d bytes of headers was answered", len(long))
	} else if err != nil {
		t.Logf("the connection was closed: %v", err)
	}
	request, err := http.NewRequest(http.MethodGet, h.rest+"/healthz", nil)
	h.ok(err)
	request.Header.Set("X-Long", long)
	reply, err := http.DefaultClient.Do(request)
	h.ok(err)
	reply.Body.Close()
	if reply.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %d over HTTP", reply.StatusCode)
	}
	h.session(true)
}

// TestRapidReset begins requests and cancels them at once, as fast as it can (the attack of CVE-2023-44487). Other
// clients must be served meanwhile. Afterwards the server must have no more goroutines than before, and hardly more
// memory.
func TestRapidReset(t *testing.T) {
	h := newHarness(t)
	h.session(true)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	w := newWire(t, dial(t, h.address))
	go func() {
		for { // reads and drops everything that the server writes
			if _, err := w.next(func(http2.Frame) bool { return false }); err != nil {
				return
			}
		}
	}()
	for i := range uint32(20_000) {
		stream := 2*i + 1
		if w.headers(stream, "CreateSession") != nil {
			break // because the server has closed the connection
		}
		w.mu.Lock()
		err := w.framer.WriteRSTStream(stream, http2.ErrCodeCancel)
		w.mu.Unlock()
		if err != nil {
			break
		}
		if i%1000 == 0 {
			h.session(false)
		}
	}
	w.conn.Close()
	h.session(true)
	eventually(func() bool { return h.server.counts["grpc"].Open() == 1 })
	eventually(func() bool {
		runtime.GC()
		runtime.ReadMemStats(&after)
		return runtime.NumGoroutine() <= goroutines && after.HeapAlloc < before.HeapAlloc+8*mib
	})
}

// TestForeignPages: requests of web pages from other origins are refused, over gRPC and REST.
func TestForeignPages(t *testing.T) {
	h := newHarnessOf(t, Config{
		Clock: time.Now, Log: slog.New(slog.DiscardHandler), Origins: []string{"https://app.example"}, Hosts: []string{"db.test"},
	})
	host := strings.TrimPrefix(h.rest, "http://")
	_, port, _ := net.SplitHostPort(host)
	for _, c := range []struct {
		headers string // headers of the request, as "name: value", separated by commas
		want    int
	}{
		{"", 200},
		{"Content-Type: text/plain", 200},
		{"Origin: " + h.rest, 200},
		{"Origin: " + h.rest + ", Sec-Fetch-Site: same-origin", 200},
		{"Sec-Fetch-Site: none", 200},
		{"Origin: https://app.example, Sec-Fetch-Site: cross-site", 200},
		{"Host: localhost:" + port, 200},
		{"Host: [::1]:" + port, 200},
		{"Host: DB.test", 200},
		{"Origin: https://evil.example", 403},
		{"Origin: https://evil.example, Content-Type: text/plain", 403},
		{"Origin: null", 403},
		{"Origin: http://127.0.0.1:1", 403},
		{"Origin: https://app.example.evil.example", 403},
		{"Origin: http://app.example", 403},
		{"Sec-Fetch-Site: cross-site", 403},
		{"Sec-Fetch-Site: same-site", 403},
		{"Host: evil.example", 403},
		{"Host: evil.example:" + port + ", Origin: http://evil.example:" + port + ", Sec-Fetch-Site: same-origin", 403},
		{"Host: localhost.evil.example", 403},
	} {
		for _, path := range []string{"/v1/" + testDatabase + "/sessions", "/healthz"} {
			verb := http.MethodGet
			if path != "/healthz" {
				verb = http.MethodPost
			}
			request, err := http.NewRequest(verb, h.rest+path, strings.NewReader("{}"))
			h.ok(err)
			for _, header := range strings.FieldsFunc(c.headers, func(r rune) bool { return r == ',' }) {
				name, value, _ := strings.Cut(strings.TrimSpace(header), ": ")
				if name == "Host" {
					request.Host = value
				}
				request.Header.Set(name, value)
			}
			reply, err := http.DefaultClient.Do(request)
			h.ok(err)
			reply.Body.Close()
			if reply.StatusCode != c.want {
				t.Errorf("%s %s with %q: answered %d, want %d", verb, path, c.headers, reply.StatusCode, c.want)
			}
			allowed := reply.Header.Get("Access-Control-Allow-Origin")
			if want := request.Header.Get("Origin"); want == "https://app.example" && allowed != want {
				t.Errorf("an allowed page is told %q", allowed)
			} else if want != "https://app.example" && allowed != "" {
				t.Errorf("with %q: Access-Control-Allow-Origin is %q", c.headers, allowed)
			}
		}
	}
	create := func(pairs ...string) error {
		_, err := h.data.CreateSession(metadata.AppendToOutgoingContext(h.ctx, pairs...), &spannerpb.CreateSessionRequest{Database: testDatabase})
		return err
	}
	h.ok(create("origin", "https://app.example"))
	h.fails(create("origin", "https://evil.example"), codes.PermissionDenied)
	h.fails(create("sec-fetch-site", "cross-site"), codes.PermissionDenied)
}

// TestPreflight: in reply to a preflight request, the server lets a browser send a page's requests only if the page's
// origin is allowed.
func TestPreflight(t *testing.T) {
	h := newHarnessOf(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), Origins: []string{"https://app.example"}})
	ask := func(origin string) *http.Response {
		request, err := http.NewRequest(http.MethodOptions, h.rest+"/v1/"+testDatabase+"/sessions", nil)
		h.ok(err)
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", "POST")
		request.Header.Set("Access-Control-Request-Headers", "content-type")
		reply, err := http.DefaultClient.Do(request)
		h.ok(err)
		reply.Body.Close()
		return reply
	}
	if r := ask("https://app.example"); r.StatusCode != http.StatusNoContent || r.Header.Get("Access-Control-Allow-Methods") != "POST" || r.Header.Get("Access-Control-Allow-Headers") != "content-type" {
		t.Errorf("an allowed page gets %d %v", r.StatusCode, r.Header)
	}
	if r := ask("https://evil.example"); r.StatusCode != http.StatusForbidden || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign page gets %d %v", r.StatusCode, r.Header)
	}
}

// pipes is a listener whose connections stay within the process, for tests with a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// TestSlowClients: the server closes a connection whose client does not begin the protocol, does not finish what it
// sends, or sends no requests. Each case gives the time after which that happens, by the test's clock.
func TestSlowClients(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		within time.Duration
		client func(t *testing.T, grpc, http *pipes) error // acts as the client until the server closes the connection
	}{
		"gRPC: nothing": {listener.HandshakeTime, time.Second, func(_ *testing.T, grpc, _ *pipes) error {
			_, err := io.Copy(io.Discard, grpc.dial())
			return err
		}},
		"gRPC: a request without its message": {listener.ReceiveTime, time.Minute, func(t *testing.T, grpc, _ *pipes) error {
			w := newWire(t, grpc.dial())
			go w.headers(1, "CreateSession")
			_, err := w.next(func(http2.Frame) bool { return false })
			return err
		}},
		"gRPC: a long message of which nothing comes": {20 * time.Second, time.Second, slowUpload(0)},
		"gRPC: a long message that comes too slowly":  {20 * time.Second, time.Second, slowUpload(10_000)},
		"gRPC: idle": {listener.IdleTime, time.Minute, func(t *testing.T, grpc, _ *pipes) error {
			_, err := newWire(t, grpc.dial()).next(isGoAway)
			return err
		}},
		"HTTP: half of the headers": {listener.HandshakeTime, time.Second, func(_ *testing.T, _, http *pipes) error {
			conn := http.dial()
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, conn)
			return err
		}},
		"HTTP: half of the body": {listener.ReceiveTime, time.Second, func(t *testing.T, _, http *pipes) error {
			conn := http.dial()
			if _, err := fmt.Fprintf(conn, "POST /v1/%s/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{", testDatabase); err != nil {
				return err
			}
			reply, err := io.ReadAll(conn)
			if !strings.HasPrefix(string(reply), "HTTP/1.1 504 ") {
				t.Errorf("answered %q", reply)
			}
			return err
		}},
		"HTTP: idle after a request": {listener.IdleTime, time.Second, func(_ *testing.T, _, http *pipes) error {
			conn := http.dial()
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, conn)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				grpc, http := newPipes(), newPipes()
				stop := servePipes(t, grpc, http)
				begin := time.Now()
				if err := c.client(t, grpc, http); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				if took := time.Since(begin); took < c.after || took > c.after+c.within {
					t.Errorf("the connection ended after %v, want %v", took, c.after)
				}
				stop()
			})
		})
	}
}

// servePipes starts a server with an empty registry on the two listeners.
func servePipes(t *testing.T, grpc, http net.Listener) (stop func()) {
	t.Helper()
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	registry, err := database.Open(store, database.Config{Clock: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(registry, grpc, http, Config{Clock: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(s.Close(), registry.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
}
