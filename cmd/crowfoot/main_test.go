package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cloud.google.com/go/spanner"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// runMain is an environment variable. It makes the test binary run main, so that tests can use the binary as crowfoot.
const runMain = "CROWFOOT_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	if dir := os.Getenv(runHandler); dir != "" {
		if err := handleLines(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if seeds := os.Getenv(runFiles); seeds != "" {
		if err := readChanged(seeds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(runTests(m))
}

// runTests runs the tests with a directory of their own for the state files of imports.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "crowfoot-state")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_STATE_HOME", dir)
	return m.Run()
}

// hasState reports whether the tests' directory has the state file of an import into a table.
func hasState(t *testing.T, table string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "crowfoot", "imports", table+"-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names) > 0
}

// startServer starts crowfoot in a process of its own. It returns the process and the address of the gRPC API.
func startServer(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd, grpc, _ := serveBoth(t, args...)
	return cmd, grpc
}

// serveBoth starts crowfoot in a process of its own. It returns the process and the addresses of both APIs, gRPC and
// HTTP.
func serveBoth(t *testing.T, args ...string) (cmd *exec.Cmd, grpc, http string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], append([]string{"start", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
	grpc, http = ready(t, cmd)
	return cmd, grpc, http
}

// ready starts cmd, a command that runs crowfoot start, and waits until the server is ready. It returns the server's
// addresses.
func ready(t *testing.T, cmd *exec.Cmd) (grpc, http string) {
	t.Helper()
	cmd.Env = append(os.Environ(), runMain+"=1")
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the server printed no ready line")
	}
	if _, err := fmt.Sscanf(lines.Text(), "crowfoot: ready grpc=%s http=%s", &grpc, &http); err != nil {
		t.Fatalf("ready line %q: %v", lines.Text(), err)
	}
	return grpc, http
}

const crashDatabase = "projects/p/instances/i/databases/d"

// TestKill checks that the database is right after the server was killed with SIGKILL during commits, again and again.
// Every acknowledged commit must be in the database, and every other commit completely or not at all.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	ddl := filepath.Join(dir, "schema.sql")
	script := "CREATE TABLE A (K STRING(36)) PRIMARY KEY (K);\n-- the other half\nCREATE TABLE B (K STRING(36)) PRIMARY KEY (K);"
	if err := os.WriteFile(ddl, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	acknowledged := map[string]bool{}
	for round := range 4 {
		cmd, address := startServer(t, "--data", data, "--database", crashDatabase, "--ddl", ddl)
		client := connect(t, address)
		check(t, client, acknowledged)
		for k := range writeUntilKilled(t, client, cmd.Process, round) {
			acknowledged[k] = true
		}
		cmd.Wait()
		client.Close()
	}
	_, address := startServer(t, "--data", data)
	client := connect(t, address)
	defer client.Close()
	check(t, client, acknowledged)
	t.Logf("%d commits acknowledged, none lost", len(acknowledged))
}

func connect(t *testing.T, address string) *spanner.Client {
	t.Helper()
	t.Setenv("SPANNER_EMULATOR_HOST", address)
	client, err := spanner.NewClientWithConfig(context.Background(), crashDatabase, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// writeUntilKilled lets eight clients commit pairs of rows. It kills the server after 50 to 250 acknowledged commits,
// while other commits are running. It returns the keys of the acknowledged commits.
func writeUntilKilled(t *testing.T, client *spanner.Client, server *os.Process, round int) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	acknowledged := make(chan string)
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("%d-%d-%d", round, writer, i)
				_, err := client.Apply(ctx, []*spanner.Mutation{
					spanner.Insert("A", []string{"K"}, []any{key}),
					spanner.Insert("B", []string{"K"}, []any{key}),
				})
				if err == nil {
					acknowledged <- key
				}
			}
		})
	}
	go func() { writers.Wait(); close(acknowledged) }()
	done := map[string]bool{}
	last := 50 + rand.IntN(200)
	for key := range acknowledged {
		done[key] = true
		if len(done) == last {
			server.Kill()
			cancel()
		}
	}
	return done
}

// check compares the keys in both tables with each other and with the acknowledged keys.
func check(t *testing.T, client *spanner.Client, acknowledged map[string]bool) {
	t.Helper()
	tx := client.ReadOnlyTransaction()
	defer tx.Close()
	var found [2]map[string]bool
	for i, tableName := range []string{"A", "B"} {
		found[i] = map[string]bool{}
		err := tx.Read(context.Background(), tableName, spanner.AllKeys(), []string{"K"}).Do(func(r *spanner.Row) error {
			var k string
			err := r.Column(0, &k)
			found[i][k] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for k := range acknowledged {
		if !found[0][k] {
			t.Errorf("the acknowledged commit of %s is lost", k)
		}
	}
	for k := range found[0] {
		if !found[1][k] {
			t.Errorf("half of the commit of %s is there", k)
		}
	}
	if len(found[0]) != len(found[1]) {
		t.Errorf("A has %d rows, B %d", len(found[0]), len(found[1]))
	}
}

// startAt starts a server in memory with these flags and environment variables. It returns the process, its standard
// error and the address of its REST API.
func startAt(t *testing.T, env []string, args ...string) (*exec.Cmd, io.Reader, string) {
	t.Helper()
	return startCommand(t, env, append([]string{"--in-memory", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
}

// startCommand starts a server with these flags and environment variables. Unlike startAt, it adds no flags. It returns
// the process, its standard error and the address of its REST API.
func startCommand(t *testing.T, env []string, args ...string) (*exec.Cmd, io.Reader, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"start"}, args...)...)
	cmd.Env = append(append(os.Environ(), runMain+"=1"), env...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var grpc, address string
	if _, err := fmt.Fscanf(out, "crowfoot: ready grpc=%s http=%s\n", &grpc, &address); err != nil {
		message, _ := io.ReadAll(log)
		t.Fatalf("%v: %s", err, message)
	}
	return cmd, log, address
}

// askForNone sends a request that fails.
func askForNone(t *testing.T, address string) {
	t.Helper()
	reply, err := http.Get("http://" + address + "/v1/projects/p/instances/none")
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
}

// TestStartLogs checks that with the flags --log-level debug and --log-json the server logs every request, as a line of
// JSON to standard error.
func TestStartLogs(t *testing.T) {
	_, log, address := startAt(t, nil, "--log-level", "debug", "--log-json")
	askForNone(t, address)
	var line struct{ Level, Method, Resource, Code string }
	for lines := json.NewDecoder(log); line.Level != "DEBUG"; {
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
	}
	if line.Level != "DEBUG" || line.Method != "GetInstance" || line.Resource != "projects/p/instances/none" || line.Code != "NotFound" {
		t.Errorf("the line says %+v", line)
	}
}

// TestStartExports checks that the server sends its metrics to a collector if OpenTelemetry's environment variables are
// set.
func TestStartExports(t *testing.T) {
	received := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := new(collector.ExportMetricsServiceRequest)
		if err := proto.Unmarshal(body, m); err != nil {
			t.Error(err)
		}
		select {
		case received <- protojson.Format(m):
		default: // the test has not yet received the previous request
		}
	}))
	defer s.Close()
	cmd, _, address := startAt(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.URL, "OTEL_METRIC_EXPORT_INTERVAL=100"})
	askForNone(t, address)
	for text := range received {
		if containsAll(text, "crowfoot_requests_total", "crowfoot_request_seconds", "crowfoot_cpu_seconds_total", "crowfoot_sent_bytes_total", "GetInstance", "NotFound") {
			break
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func containsAll(text string, wanted ...string) bool {
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			return false
		}
	}
	return true
}
