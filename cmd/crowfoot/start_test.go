package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// status requests a resource from the REST API and returns the HTTP status.
func status(t *testing.T, address, resource string) int {
	t.Helper()
	reply, err := http.Get("http://" + address + "/v1/" + resource)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	return reply.StatusCode
}

// metrics returns the values that /metrics shows, by name and labels.
func metrics(t *testing.T, address string) map[string]float64 {
	t.Helper()
	reply, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(data)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name], _ = strconv.ParseFloat(text, 64)
	}
	return values
}

// TestStartFromVariables checks that a server that is configured only by environment variables has the databases and
// the log level that they name.
func TestStartFromVariables(t *testing.T) {
	const other = "projects/p/instances/i/databases/other"
	_, log, address := startCommand(t, []string{
		"CROWFOOT_IN_MEMORY=true", "CROWFOOT_GRPC=127.0.0.1:0", "CROWFOOT_HTTP=127.0.0.1:0",
		"CROWFOOT_DATABASE=" + crashDatabase + "," + other, "CROWFOOT_LOG_LEVEL=debug", "CROWFOOT_DDL=",
	})
	for _, name := range []string{crashDatabase, other} {
		if got := status(t, address, name); got != http.StatusOK {
			t.Errorf("%s: %d", name, got)
		}
	}
	awaitLine(t, bufio.NewScanner(log), "level=DEBUG", "")
}

// TestFlagsWin checks that a flag overrides its own environment variable, and also the variable of another flag that
// contradicts it.
func TestFlagsWin(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	env := []string{"CROWFOOT_IN_MEMORY=true", "CROWFOOT_GRPC=nonsense", "CROWFOOT_HTTP=nonsense", "CROWFOOT_DATABASE=nonsense", "CROWFOOT_LOG_LEVEL=loud"}
	_, _, address := startCommand(t, env, "--data", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--database", crashDatabase, "--log-level", "info")
	if got := status(t, address, crashDatabase); got != http.StatusOK {
		t.Errorf("the database: %d", got)
	}
	if _, err := os.Stat(data); err != nil {
		t.Error(err)
	}
	unused := filepath.Join(t.TempDir(), "data")
	startAt(t, []string{"CROWFOOT_DATA=" + unused}) // startAt adds --in-memory, which contradicts the variable
	if _, err := os.Stat(unused); err == nil {
		t.Error("--in-memory has made the directory of CROWFOOT_DATA")
	}
}

// TestSpareThreads checks that the server may run Go code on two more threads than there are processors, unless
// GOMAXPROCS sets the number.
func TestSpareThreads(t *testing.T) {
	for variables, want := range map[string]int{"GOMAXPROCS=": runtime.GOMAXPROCS(0) + 2, "GOMAXPROCS=3": 3} {
		_, _, address := startAt(t, []string{variables})
		if got := metrics(t, address)["go_sched_gomaxprocs_threads"]; got != float64(want) {
			t.Errorf("%s: %v threads, want %d", variables, got, want)
		}
	}
}

// TestStartAgain checks that the command which created a database can be used to start the server again. The second
// server must log that it did not run the DDL.
func TestStartAgain(t *testing.T) {
	ddl := writeFile(t, "schema.sql", "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
	args := []string{"--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"), "--database", crashDatabase, "--ddl", ddl}
	first, log, _ := startCommand(t, nil, args...)
	first.Process.Signal(syscall.SIGTERM)
	awaitLine(t, bufio.NewScanner(log), "msg=stopped", "not run")
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	_, log, address := startCommand(t, nil, args...)
	if line := awaitLine(t, bufio.NewScanner(log), ddl+" not run: the database exists already", ""); !strings.Contains(line, crashDatabase) {
		t.Errorf("the second start says %q", line)
	}
	if got := status(t, address, crashDatabase+"/ddl"); got != http.StatusOK {
		t.Errorf("the database: %d", got)
	}
}

// awaitLine reads a log until a line contains the wanted text, and returns that line. Neither this line nor an earlier
// one may contain the unwanted text, unless this text is empty.
func awaitLine(t *testing.T, lines *bufio.Scanner, wanted, unwanted string) string {
	t.Helper()
	for lines.Scan() {
		if unwanted != "" && strings.Contains(lines.Text(), unwanted) {
			t.Errorf("the log says %q", lines.Text())
		}
		if strings.Contains(lines.Text(), wanted) {
			return lines.Text()
		}
	}
	t.Fatalf("no line of the log says %q", wanted)
	return ""
}

// TestLifeInLog checks that the log has lines for the start, the addresses, the reason of the stop, and the end. If the
// previous server was killed, and only then, the log must say that the data was not closed in order.
func TestLifeInLog(t *testing.T) {
	t.Chdir(t.TempDir())
	data, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	cmd, log, address := startCommand(t, nil, "--data", "data", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--memory", "1GiB")
	lines := bufio.NewScanner(log)
	line := awaitLine(t, lines, "msg=starting", "")
	if !containsAll(line, "level=INFO", "version=", "data="+data, "memory_bytes=1073741824") {
		t.Error(line)
	}
	if line := awaitLine(t, lines, "msg=ready", "other machines"); !containsAll(line, "grpc=127.0.0.1:", "http="+address) {
		t.Error(line)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	awaitLine(t, lines, `msg="told to stop" cause="terminated signal received"`, "")
	awaitLine(t, lines, "msg=stopped", "")

	const recovers = "not closed in order"
	start := func(unwanted string) (*exec.Cmd, *bufio.Scanner) {
		cmd, log, _ := startCommand(t, nil, "--data", "data", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
		lines := bufio.NewScanner(log)
		if unwanted == "" {
			awaitLine(t, lines, recovers, "")
		}
		awaitLine(t, lines, "msg=ready", unwanted)
		return cmd, lines
	}
	cmd, _ = start(recovers)
	cmd.Process.Kill()
	cmd.Wait()
	cmd, lines = start("")
	cmd.Process.Signal(syscall.SIGTERM)
	awaitLine(t, lines, "msg=stopped", "")
	start(recovers)
}

// TestWarnings checks that a server logs a warning if other machines can reach it, and if it may use more memory than
// the machine has.
func TestWarnings(t *testing.T) {
	_, log, _ := startCommand(t, nil, "--in-memory", "--grpc", "0.0.0.0:0", "--http", "127.0.0.1:0", "--memory", "64TiB")
	lines := bufio.NewScanner(log)
	awaitLine(t, lines, "more memory than the machine or container has", "")
	awaitLine(t, lines, "neither authentication nor encryption", "")
}
