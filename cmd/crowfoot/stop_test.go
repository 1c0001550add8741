package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndAfter checks that endAfter ends the process when stopLimit has passed since the end of the context, and not
// before. If nobody reads the last message of the process, endAfter may end it up to messageLimit later.
func TestEndAfter(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			pipe, message := io.Pipe()
			exited := make(chan int, 1)
			endAfter(ctx, stopLimit, message, func(status int) { exited <- status })
			var text []byte
			if reads {
				go func() { text, _ = io.ReadAll(pipe) }()
			}
			time.Sleep(time.Hour)
			cancel(errors.New("hangup signal received"))
			time.Sleep(stopLimit - 1)
			synctest.Wait()
			if len(exited) > 0 {
				t.Error("it ended too early")
			}
			time.Sleep(messageLimit + 1)
			synctest.Wait()
			if len(exited) == 0 || <-exited != exitFailure {
				t.Error("it has not ended, or as if all were well")
			}
			pipe.Close()
			message.Close()
			synctest.Wait()
			if reads && !strings.Contains(string(text), "hangup signal received") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// busyServer is a server in a child process, which the test keeps busy with requests over REST.
type busyServer struct {
	*testing.T
	address string // address of the HTTP listener
}

// send sends a request over REST. It returns nil if the connection breaks.
func (s *busyServer) send(verb, path, body string) *http.Response {
	req, err := http.NewRequest(verb, "http://"+s.address+"/v1/"+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return nil
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	return reply
}

func (s *busyServer) post(path, body string) *http.Response {
	return s.send(http.MethodPost, path, body)
}

// text sends a GET for a path, and returns the body of the reply.
func (s *busyServer) text(path string) string {
	s.Helper()
	reply, err := http.Get("http://" + s.address + "/" + path)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s %s, %v", path, reply.Status, text, err)
	}
	return string(text)
}

// must sends a POST that must succeed, and returns the body of the reply.
func (s *busyServer) must(path, body string) string {
	s.Helper()
	reply := s.post(path, body)
	if reply == nil {
		s.Fatalf("%s: no reply", path)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s %s, %v", path, reply.Status, text, err)
	}
	return string(text)
}

// begin connects to a listener, writes text, and leaves the connection open.
func (s *busyServer) begin(address, text string) {
	s.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte(text)); err != nil {
		s.Fatal(err)
	}
}

// TestStopWhileBusy checks that SIGTERM shuts a busy server down cleanly. The server is filling an index, transactions
// hold locks and wait for them, queries run, and clients do not read, do not finish sending, or do nothing. The next
// process must complete the index.
func TestStopWhileBusy(t *testing.T) {
	ddl := writeFile(t, "schema.sql", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K); CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)")
	args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--database", crashDatabase, "--ddl", ddl}
	cmd, grpc, address := serveBoth(t, args...)
	s := &busyServer{T: t, address: address}
	var session struct{ Name string }
	if err := json.Unmarshal([]byte(s.must(crashDatabase+"/sessions", "{}")), &session); err != nil {
		t.Fatal(err)
	}
	const write = `{"singleUseTransaction": {"readWrite": {}}, "mutations": [{"insertOrUpdate": {"table": "T", "columns": ["K"], "values": [["1"]]}}]}`
	s.must(session.Name+":commit", write)
	var inserted struct {
		Metadata struct{ Transaction struct{ ID string } }
	}
	rows := s.must(session.Name+":executeSql", `{"transaction": {"begin": {"readWrite": {}}}, "seqno": 1, "sql": "INSERT INTO U (K) SELECT * FROM UNNEST(GENERATE_ARRAY(1, 20000))"}`)
	if err := json.Unmarshal([]byte(rows), &inserted); err != nil {
		t.Fatal(err)
	}
	s.must(session.Name+":commit", `{"transactionId": "`+inserted.Metadata.Transaction.ID+`"}`)
	// This transaction stays open. It holds a lock on the row that the commit below writes.
	s.must(session.Name+":executeSql", `{"transaction": {"begin": {"readWrite": {}}}, "seqno": 1, "sql": "UPDATE T SET V = 1 WHERE K = 1"}`)

	const activeQueries = `{"sql": "SELECT TEXT FROM SPANNER_SYS.OLDEST_ACTIVE_QUERIES"}`
	const fill = "v1/" + crashDatabase + "/operations/fill"
	var ended sync.WaitGroup
	ended.Go(func() { // this request waits until the index is filled or the server has stopped
		if reply := s.send("PATCH", crashDatabase+"/ddl", `{"operationId": "fill", "statements": ["CREATE INDEX ByV ON U(V)"]}`); reply != nil {
			reply.Body.Close()
		}
	})
	ended.Go(func() {
		if reply := s.post(session.Name+":commit", write); reply != nil {
			reply.Body.Close()
			if reply.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("a request that waits for a lock: %s", reply.Status)
			}
		}
	})
	const many = "UNNEST(GENERATE_ARRAY(1, 1000)) AS a, UNNEST(GENERATE_ARRAY(1, 1000)) AS b, UNNEST(GENERATE_ARRAY(1, 1000)) AS c"
	ended.Go(func() {
		if reply := s.post(session.Name+":executeSql", `{"sql": "SELECT SUM(a * b * c) FROM `+many+`"}`); reply != nil {
			reply.Body.Close()
			if reply.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("a long query: %s", reply.Status)
			}
		}
	})
	unread := s.post(session.Name+":executeStreamingSql", `{"sql": "SELECT REPEAT('x', 100000), a, b, c FROM `+many+`"}`)
	if unread == nil {
		t.Fatal("no stream")
	}
	defer unread.Body.Close()
	s.begin(grpc, "")
	s.begin(address, "")
	s.begin(address, "POST /v1/"+session.Name+":commit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	waits := fmt.Sprintf("crowfoot_lock_waiters{database=%q} 1\n", crashDatabase)
	for !strings.Contains(s.text("metrics"), waits) || !strings.Contains(s.must(session.Name+":executeSql", activeQueries), "SUM(a * b") {
		time.Sleep(time.Millisecond) // between two polls of the server
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	ended.Wait()

	_, _, s.address = serveBoth(t, args...)
	for {
		var op struct {
			Done  bool
			Error any
		}
		if err := json.Unmarshal([]byte(s.text(fill)), &op); err != nil || op.Error != nil {
			t.Fatal(op, err)
		}
		if op.Done {
			break
		}
		time.Sleep(time.Millisecond) // between two polls of the operation
	}
}

// TestSignals checks that each signal makes the server shut down cleanly. It skips signals that this process ignores,
// such as SIGHUP under nohup, because its child processes ignore them, too.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue
		}
		cmd, _ := startServer(t, "--in-memory")
		cmd.Process.Signal(sig)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
	}
}

// TestStopWhileStarting checks that a signal ends a server that is still creating its database. When the signal comes,
// the server must be alive but not ready.
func TestStopWhileStarting(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	script := strings.Repeat("CREATE TABLE T (K INT64, CHECK (K > 0)) PRIMARY KEY (K);\nDROP TABLE T;\n", 20_000)
	cmd := exec.Command(os.Args[0], "start", "--in-memory", "--grpc", "127.0.0.1:0", "--http", address, "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", script))
	cmd.Env = append(os.Environ(), runMain+"=1")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	for {
		reply, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			time.Sleep(time.Millisecond) // the server does not listen yet
			continue
		}
		reply.Body.Close()
		if reply.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("/readyz: %s", reply.Status)
		}
		break
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}
