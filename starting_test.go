package crowfoot

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestStarting checks that the server answers HTTP requests before its data is open: it answers that it is alive and
// not ready. When another server takes over the listener, that server must answer, even if a client has opened a
// connection before that server serves.
func TestStarting(t *testing.T) {
	s, err := serveStarting("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + s.listener.Addr().String()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/v1/projects/p/instances": http.StatusServiceUnavailable} {
		reply, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(reply.Body)
		reply.Body.Close()
		says := "starting\n"
		if strings.HasPrefix(path, "/v1/") {
			says = `{"error":{"code":503,"message":"The server is starting.","status":"UNAVAILABLE"}}` + "\n"
		}
		if reply.StatusCode != want || string(text) != says {
			t.Errorf("%s: %d %s", path, reply.StatusCode, text)
		}
	}
	l, err := s.handOver()
	if err != nil {
		t.Fatal(err)
	}
	early, err := net.Dial("tcp", l.Addr().String()) // connects before the next server serves
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	next := &http.Server{Handler: http.NotFoundHandler()}
	go next.Serve(l)
	defer next.Close()
	reply, err := http.Get(address + "/readyz")
	if err != nil || reply.StatusCode != http.StatusNotFound {
		t.Errorf("of the next server: %v, %v", reply, err)
	}
	reply.Body.Close()
}

// TestStartFails checks that after a failed start the address is no longer in use.
func TestStartFails(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	if s, err := Start(t.Context(), Options{InMemory: true, HTTP: address, Databases: []string{"nonsense"}}); err == nil {
		t.Error("it started", s.Close())
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
