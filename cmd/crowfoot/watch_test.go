package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/watch"
)

const watchedDDL = `CREATE TABLE T (K INT64, V STRING(MAX), Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (K)`

// watched starts a server with a table that can be watched, and returns a client of it.
func watched(t *testing.T) *spanner.Client {
	t.Helper()
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", watchedDDL))
	client := connect(t, address)
	t.Cleanup(client.Close)
	return client
}

// put commits a row, and returns the commit timestamp.
func put(t *testing.T, client *spanner.Client, k int, v string) time.Time {
	t.Helper()
	row := spanner.InsertOrUpdate("T", []string{"K", "V", "Changed"}, []any{k, v, spanner.CommitTimestamp})
	at, err := client.Apply(t.Context(), []*spanner.Mutation{row})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// watcher is a crowfoot watch that runs in a process of its own.
type watcher struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startWatcher(t *testing.T, args ...string) *watcher {
	t.Helper()
	if !slices.Contains(args, "--stream") {
		args = append(args, "--interval", "10ms")
	}
	w := &watcher{t: t, cmd: exec.Command(os.Args[0], append([]string{"watch", "--database", crashDatabase}, args...)...)}
	w.cmd.Env = append(os.Environ(), runMain+"=1")
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cmd.Process.Kill(); w.cmd.Wait() })
	w.lines = bufio.NewScanner(out)
	return w
}

// next returns the key and the value in the next line that the watcher prints, as "1 a".
func (w *watcher) next() string {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the watcher has ended: %v", w.lines.Err())
	}
	return keyAndValue(w.t, w.lines.Bytes())
}

func keyAndValue(t *testing.T, line []byte) string {
	t.Helper()
	var change struct {
		Keys      struct{ K int }
		NewValues struct{ V string } `json:"new_values"`
	}
	if err := json.Unmarshal(line, &change); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return fmt.Sprint(change.Keys.K, " ", change.NewValues.V)
}

// until reads lines until it has read one with the given key and value.
func (w *watcher) until(want string) {
	w.t.Helper()
	for w.next() != want {
	}
}

// stop sends SIGTERM to the watcher, which must then end with status 0.
func (w *watcher) stop() {
	w.t.Helper()
	w.cmd.Process.Signal(syscall.SIGTERM)
	for w.lines.Scan() {
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("the watcher has ended with %v", err)
	}
}

// TestWatch checks that a watcher prints changes as they come. A watcher that was killed and started again must miss no
// change, and one that was stopped must continue exactly where it was.
func TestWatch(t *testing.T) {
	client := watched(t)
	at := filepath.Join(t.TempDir(), "watch.json")
	put(t, client, 1, "a")
	put(t, client, 2, "b")
	w := startWatcher(t, "--from", "beginning", "--repository", at)
	if first, second := w.next(), w.next(); first != "1 a" || second != "2 b" {
		t.Errorf("%s, %s", first, second)
	}
	put(t, client, 1, "c")
	w.until("1 c")
	w.cmd.Process.Kill()
	w.cmd.Wait()
	put(t, client, 3, "d")
	put(t, client, 1, "e")
	w = startWatcher(t, "--repository", at)
	w.until("3 d")
	if last := w.next(); last != "1 e" {
		t.Errorf("%s", last)
	}
	w.stop()
	put(t, client, 4, "f")
	w = startWatcher(t, "--repository", at)
	if first := w.next(); first != "4 f" {
		t.Errorf("after a stop in order the first is %s", first)
	}
	w.stop()
}

// TestWatchSpannerRepository checks that a watcher that stores its checkpoints in a table of the watched database
// continues after a restart where it stopped.
func TestWatchSpannerRepository(t *testing.T) {
	client := watched(t)
	put(t, client, 1, "a")
	w := startWatcher(t, "T", "--from", "beginning", "--repository", "spanner")
	w.until("1 a")
	w.stop()
	put(t, client, 2, "b")
	w = startWatcher(t, "T", "--repository", "spanner:"+crashDatabase)
	if first := w.next(); first != "2 b" {
		t.Errorf("%s", first)
	}
	w.stop()
}

// TestWatchChangeSets checks that a watcher prints a change of a table that has no column of commit timestamps but
// refers to a table of change sets. The table of change sets and its key column do not have the default names,
// CHANGE_SETS and CHANGE_SET_ID.
func TestWatchChangeSets(t *testing.T) {
	ddl := "CREATE TABLE T (K INT64, V STRING(MAX), CHANGE_SET_ID STRING(MAX)) PRIMARY KEY (K);\n" +
		"CREATE TABLE Sets (Id STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Id)"
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", ddl))
	client := connect(t, address)
	defer client.Close()
	sets := &watch.ChangeSets{Table: "Sets", ID: "Id"}
	_, err := sets.ReadWriteTransaction(t.Context(), client, func(_ context.Context, tx *spanner.ReadWriteTransaction, id string) error {
		return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("T", []string{"K", "V", "CHANGE_SET_ID"}, []any{1, "a", id})})
	})
	if err != nil {
		t.Fatal(err)
	}
	w := startWatcher(t, "--from", "beginning", "--repository", "memory", "--change-sets", "Sets,Id", "--request-tag", "watch")
	if first := w.next(); first != "1 a" {
		t.Errorf("%s", first)
	}
	w.stop()
}

// TestWatchStream checks that a watcher of a change stream delivers every change, deletes included.
func TestWatchStream(t *testing.T) {
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", watchedDDL+";\nCREATE CHANGE STREAM S FOR ALL"))
	client := connect(t, address)
	defer client.Close()
	at := filepath.Join(t.TempDir(), "watch.json")
	first := put(t, client, 1, "a")
	w := startWatcher(t, "--stream", "S", "--repository", at, "--from", first.Add(-time.Microsecond).Format(time.RFC3339Nano))
	put(t, client, 1, "b")
	if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Delete("T", spanner.Key{1})}); err != nil {
		t.Fatal(err)
	}
	if first, second, third := w.next(), w.next(), w.next(); first != "1 a" || second != "1 b" || third != "1 " || !strings.Contains(w.lines.Text(), `"mod_type":"DELETE"`) {
		t.Errorf("%s, %s, %s", first, second, third)
	}
	w.stop()
}

// TestWatchExec checks that the command of --exec gets the lines, and that the watcher ends with status 0 when this
// command ends with status 0.
func TestWatchExec(t *testing.T) {
	client := watched(t)
	for k := range 3 {
		put(t, client, k, "a")
	}
	w := startWatcher(t, "--from", "beginning", "--repository", "memory", "--exec", "head -n 2")
	if first, second := w.next(), w.next(); first != "0 a" || second != "1 a" {
		t.Errorf("%s, %s", first, second)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	for k := 3; ; k++ {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the watcher has ended with %v", err)
			}
			return
		default:
			put(t, client, k, "a") // because the watcher notices the end of the command only when it has a line for it
		}
	}
}

// TestWatchPost checks that a change is posted again until the server accepts it.
func TestWatchPost(t *testing.T) {
	client := watched(t)
	var requests atomic.Int32
	posted := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if requests.Add(1) <= 2 || r.Header.Get("Token") != "x" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		posted <- r.Header.Get("Ce-Subject") + " " + keyAndValue(t, body)
	}))
	defer server.Close()
	put(t, client, 1, "a")
	w := startWatcher(t, "--from", "beginning", "--repository", "memory", "--post", server.URL, "--post-mode", "binary", "--post-header", "Token: x")
	if got := <-posted; got != "T 1 a" {
		t.Errorf("%s", got)
	}
	w.stop()
	if n := requests.Load(); n < 3 {
		t.Errorf("%d requests", n)
	}
}

// TestWatchPubsub checks that changes are published to Pub/Sub, in both formats.
func TestWatchPubsub(t *testing.T) {
	client := watched(t)
	server := pstest.NewServer()
	defer server.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Addr)
	put(t, client, 1, "a")
	for _, c := range []struct{ format, data string }{{"json", `{"K":1,"V":"a","Changed":"`}, {"avro", "\x02\x02\x02\x02a\x02"}} {
		server.ClearMessages()
		w := startWatcher(t, "--from", "beginning", "--repository", "memory", "--pubsub-topic", "%database%-%table%", "--pubsub-create-topics", "--pubsub-format", c.format)
		for len(server.Messages()) == 0 && w.cmd.Process.Signal(syscall.Signal(0)) == nil {
			time.Sleep(time.Millisecond)
		}
		w.stop()
		if m := server.Messages()[0]; !strings.HasPrefix(string(m.Data), c.data) || m.Attributes["Table"] != "T" || m.OrderingKey != `T{"K":1}` || m.Topic != "projects/p/topics/d-T" {
			t.Errorf("%s: %q, %v, %s, %s", c.format, m.Data, m.Attributes, m.OrderingKey, m.Topic)
		}
	}
}

// TestAvroSchemas checks that --avro-schemas prints the schemas of the tables.
func TestAvroSchemas(t *testing.T) {
	watched(t)
	want := `{"table_name":"T","schema":{"type":"record","name":"T","fields":[{"name":"K","type":["null","long"],"default":null},` +
		`{"name":"V","type":["null","string"],"default":null},{"name":"Changed","type":["null","string"],"default":null}]}}` + "\n"
	if out, errOut, status := runCrowfoot(t, nil, "watch", "--database", crashDatabase, "--avro-schemas"); out != want || errOut != "" || status != 0 {
		t.Errorf("status %d, %q, %s; want %s", status, errOut, out, want)
	}
}

// TestWatchFails checks that permanent errors end the watcher, with the server's message.
func TestWatchFails(t *testing.T) {
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", watchedDDL+";\nCREATE TABLE LAST_SEEN_COMMIT_TIMESTAMPS (Id INT64) PRIMARY KEY (Id)"))
	t.Setenv("SPANNER_EMULATOR_HOST", address)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"None"}, "crowfoot: Table not found: None\n"},
		{[]string{"T", "--hint", "@{FORCE_INDEX=None}"}, "crowfoot: The table T does not have a secondary index called None.\n"},
		{[]string{"T", "--repository", "spanner"}, "crowfoot: Table LAST_SEEN_COMMIT_TIMESTAMPS cannot hold commit timestamps: it has no column DATABASE_NAME\n"},
		{[]string{"T", "--repository", "/proc/watch.json"}, "crowfoot: The file /proc/watch.json cannot hold checkpoints: open /proc/watch.json.lock: no such file or directory\n"},
		{[]string{"T", "--repository", writeFile(t, "empty.json", "")}, "crowfoot: The file "},
	} {
		args := append([]string{"watch", "--database", crashDatabase, "--repository", "memory"}, c.args...)
		out, errOut, status := runCrowfoot(t, nil, args...)
		if errOut = withoutLog(errOut); out != "" || !strings.HasPrefix(errOut, c.want) || strings.Count(errOut, "\n") != 1 || status != exitFailure {
			t.Errorf("%v: status %d, %q, %q; want %q", c.args, status, out, errOut, c.want)
		}
	}
}

// TestStatusLine checks that the status line shows the number of changes, the lag, and the tables that are not watched
// at the moment.
func TestStatusLine(t *testing.T) {
	feed := func(table string, s watch.State, lag time.Duration, err error) watch.FeedHealth {
		return watch.FeedHealth{Feed: watch.FeedID{TableID: watch.TableID{Name: table}}, State: s, Lag: lag, Err: err}
	}
	for _, c := range []struct {
		feeds []watch.FeedHealth
		want  string
	}{
		{nil, "1200 changes, 200/s, lag 0.0s, 0 tables"},
		{[]watch.FeedHealth{feed("A", watch.Running, 440*time.Millisecond, nil)}, "1200 changes, 200/s, lag 0.4s, A"},
		{[]watch.FeedHealth{feed("A", watch.Running, time.Second, nil), feed("B", watch.Retrying, time.Minute, errors.New("no\nroom"))},
			"1200 changes, 200/s, lag 60.0s, 2 tables; B retrying: no room"},
	} {
		if got := statusLine(watch.Health{Listed: true, Feeds: c.feeds}, newConnectivity("db"), 1200, 200); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestWatchLate checks that the log reports once that a watcher is behind, and once that it is no longer behind.
func TestWatchLate(t *testing.T) {
	var text strings.Builder
	log, late := newLog(&text, slog.LevelWarn, false), false
	for _, c := range []struct {
		h    watch.Health
		want string
	}{
		{watch.Health{}, "has not answered yet"},
		{watch.Health{}, ""},
		{watch.Health{Listed: true}, "no longer behind"},
		{watch.Health{Listed: true, Feeds: []watch.FeedHealth{{Lag: time.Second}}}, ""},
		{watch.Health{Listed: true, Feeds: []watch.FeedHealth{{Lag: time.Second}, {Lag: time.Minute}}}, "is behind"},
		{watch.Health{Listed: true, Feeds: []watch.FeedHealth{{Lag: time.Hour}}}, ""},
	} {
		text.Reset()
		late = logLate(c.h, newConnectivity("db"), log, 10*time.Second, late)
		if !strings.Contains(text.String(), c.want) || c.want == "" && text.String() != "" {
			t.Errorf("%+v: %s, want %q", c.h, text.String(), c.want)
		}
	}
}

// TestWatchNothing checks what watch and import do if no Spanner server is at the address. If another program answers,
// the command must end. If nothing answers, the log of watch must name the server for which it waits, and the reason. A
// proxy that only closes the connection must not count as another program.
func TestWatchNothing(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	address := strings.TrimPrefix(other.URL, "http://")
	for _, args := range [][]string{
		{"watch", "--repository", "memory"},
		{"watch", "--avro-schemas"},
		{"import", writeFile(t, "t.csv", "K\n"), "--table", "T"},
	} {
		_, errOut, status := runCrowfoot(t, nil, append(args, "--database", crashDatabase, "--endpoint", address)...)
		want := "crowfoot: what answers at " + address + " is not a Spanner server: it does not speak gRPC in plain text (is it the gRPC port?): "
		if !strings.HasPrefix(errOut, want) || status != exitFailure || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: status %d, %q, want %q", args, status, errOut, want)
		}
	}
	p, log := newConnectivity("127.0.0.1:1"), &strings.Builder{}
	p.begin()
	p.end(grpcstatus.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`), false)
	logLate(watch.Health{}, p, newLog(log, slog.LevelWarn, false), time.Second, false)
	logLate(watch.Health{Listed: true, Feeds: []watch.FeedHealth{{Lag: time.Hour}}}, p, newLog(log, slog.LevelWarn, false), time.Second, false)
	if want := `server=127.0.0.1:1 error="dial tcp 127.0.0.1:1: connect: connection refused"`; strings.Count(log.String(), want) != 2 {
		t.Errorf("%s, want %s in both lines", log, want)
	}
	if isForeign(grpcstatus.Error(codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`)) {
		t.Error("a proxy whose server is not there is another program")
	}
}

// TestServersWords checks that only the server's message remains of each error that a server has returned.
func TestServersWords(t *testing.T) {
	answer := func(text string) error { return grpcstatus.Error(codes.NotFound, text) }
	err := fmt.Errorf("watching: %w", errors.Join(answer("Table not found: A"), fmt.Errorf("again: %w", answer("Table not found: B")), errors.New("no room")))
	if got, want := inServersWords(err).Error(), "watching: Table not found: A\nagain: Table not found: B\nno room"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if inServersWords(nil) != nil {
		t.Error("an error of none")
	}
}

// TestWatchScreen checks that output replaces the status line.
func TestWatchScreen(t *testing.T) {
	var terminal strings.Builder
	s := &watchScreen{out: &terminal, err: &terminal, live: true, outTerminal: true}
	s.draw("one")
	s.draw("two")
	fmt.Fprintln(s.stdout(), "line")
	fmt.Fprintln(s.stderr(), "warning")
	if want := "\x1b[?7lone\x1b[?7h\r\x1b[K\x1b[?7ltwo\x1b[?7h\r\x1b[Kline\nwarning\n"; terminal.String() != want {
		t.Errorf("%q, want %q", terminal.String(), want)
	}
	if s := (&watchScreen{out: &terminal, err: io.Discard, live: true}); s.stdout() != &terminal {
		t.Error("output that is not on the terminal goes through the screen")
	}
}

// TestShards checks how the shard flags are parsed.
func TestShards(t *testing.T) {
	for _, c := range []struct {
		s    shardSettings
		want string
	}{
		{shardSettings{}, "<nil>"},
		{shardSettings{column: "S"}, "`S` IS NOT NULL map[]"},
		{shardSettings{column: "S", values: "-1..1,5", kind: "INT64"}, "`S` IN UNNEST(@shards) map[shards:[-1 0 1 5]]"},
		{shardSettings{column: "S", values: "7", kind: "int64"}, "`S` = @shards map[shards:7]"},
		{shardSettings{column: "S", values: "a,b..c", kind: "STRING"}, "`S` IN UNNEST(@shards) map[shards:[a b..c]]"},
		{shardSettings{column: "S", values: "true", kind: "BOOL"}, "`S` = @shards map[shards:true]"},
		{shardSettings{column: "S", values: "2026-11-22", kind: "DATE"}, "`S` = @shards map[shards:2026-11-22]"},
		{shardSettings{values: "1", kind: "INT64"}, "--shard-values and --shard-interval need --shard-column COLUMN"},
		{shardSettings{column: "S", values: "1", kind: "INT64", interval: "DAY"}, "--shard-values and --shard-interval contradict each other: leave one out"},
		{shardSettings{column: "S", values: "3..1", kind: "INT64"}, `--shard-values is "3..1": want a range such as -18..18, of at most 10000 values`},
		{shardSettings{column: "S", values: "x", kind: "INT64"}, `--shard-values is "x": strconv.ParseInt: parsing "x": invalid syntax`},
		{shardSettings{column: "S", values: "x", kind: "JSON"}, `--shard-values is "x": --shard-type is "JSON", want one of BOOL, BYTES, DATE, FLOAT64, INT64, STRING, TIMESTAMP`},
	} {
		p, err := c.s.provider()
		got := fmt.Sprint(p)
		if err != nil {
			got = err.Error()
		} else if p != nil {
			condition, params := p.Filter(time.Now(), time.Now())
			got = fmt.Sprint(condition, " ", params)
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}
