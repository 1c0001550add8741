package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/spanner"
)

// TestCheckpointCommand checks that a checkpoint that is made while clients write is sound. A server on the copy must
// have every commit that was acknowledged before the command began.
func TestCheckpointCommand(t *testing.T) {
	dir := t.TempDir()
	ddl, copied := filepath.Join(dir, "schema.sql"), filepath.Join(dir, "copy")
	if err := os.WriteFile(ddl, []byte("CREATE TABLE A (K STRING(36)) PRIMARY KEY (K); CREATE TABLE B (K STRING(36)) PRIMARY KEY (K)"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, grpc, address := serveBoth(t, "--data", filepath.Join(dir, "data"), "--database", crashDatabase, "--ddl", ddl)
	client := connect(t, grpc)
	pair := func(k string) []*spanner.Mutation {
		return []*spanner.Mutation{spanner.Insert("A", []string{"K"}, []any{k}), spanner.Insert("B", []string{"K"}, []any{k})}
	}
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	first := make(chan struct{}, 4)
	for w := range 4 {
		writers.Go(func() {
			for i := 0; writing.Err() == nil; i++ {
				k := fmt.Sprint(w, "-", i)
				if _, err := client.Apply(writing, pair(k)); err == nil {
					mu.Lock()
					acknowledged[k] = true
					mu.Unlock()
				}
				if i == 0 {
					first <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-first
	}
	mu.Lock()
	before := maps.Clone(acknowledged)
	mu.Unlock()
	checkpoint(t, address, copied, "")
	checkpoint(t, address, copied, "a copy needs a directory of its own")
	stop()
	writers.Wait()
	server.Process.Kill()
	server.Wait()
	client.Close()

	checkDirectory(t, copied, 0, "crowfoot: the data is sound")
	_, grpc = startServer(t, "--data", copied)
	client = connect(t, grpc)
	defer client.Close()
	check(t, client, before)
}

// TestCheckpointRefused checks that a server in memory refuses to make a checkpoint, and that a GET of the path does
// not make one.
func TestCheckpointRefused(t *testing.T) {
	_, _, address := startAt(t, nil)
	checkpoint(t, address, filepath.Join(t.TempDir(), "copy"), "keeps its data in memory")
	reply, err := http.Get("http://" + address + "/checkpoint?to=/x")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if text, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET is answered %s: %s", reply.Status, text)
	}
}

// checkpoint runs the command checkpoint. If the parameter refused is not empty, the command must fail and print this
// text. Otherwise the command must succeed.
func checkpoint(t *testing.T, address, to, refused string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "checkpoint", "--to", to, "--http", address)
	cmd.Env = append(os.Environ(), runMain+"=1")
	text, err := cmd.CombinedOutput()
	if (err != nil) != (refused != "") || !strings.Contains(string(text), refused) {
		t.Errorf("crowfoot checkpoint ends with %v and says %q, want %q", err, text, refused)
	}
}

// TestCheckpointOfOtherServer checks that the command checkpoint fails if the address belongs to another program, or is
// the gRPC port of a Crowfoot server.
func TestCheckpointOfOtherServer(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer other.Close()
		checkpoint(t, other.Listener.Addr().String(), "/copy", "is no Crowfoot server, whose address --http names: it answers "+strconv.Itoa(status))
	}
	_, grpc := startServer(t, "--in-memory")
	checkpoint(t, grpc, "/copy", "is not the REST API of a Crowfoot server, whose address --http names: ")
}
