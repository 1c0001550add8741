package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// watchKills is how often TestKillWatchers kills a process. The environment variable restartKillsName sets another
	// number.
	watchKills = 8
	watchSeed  = 3
	// watchSeedName is the environment variable with the seed of TestKillWatchers. Even and odd seeds combine the
	// watchers' modes, repositories and sinks differently.
	watchSeedName = "CROWFOOT_TEST_SEED"

	ledgerWriters = 4
	ledgerKeys    = 40        // how many keys each writer writes again and again
	ledgerOnce    = 1_000_000 // the first of the keys that are written once
)

// TestKillWatchers checks that watchers deliver the changes correctly although the server, crowfoot watch, and the
// commands that receive changes are killed with SIGKILL at random moments, while clients write. Afterwards it compares
// what each watcher has delivered with the commits: see deliveries.check.
func TestKillWatchers(t *testing.T) {
	seed := environmentInt(t, watchSeedName, watchSeed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 10))
	dir := t.TempDir()
	ddl := writeFile(t, "schema.sql", watchedDDL+";\nCREATE INDEX ByChanged ON T(Changed);\nCREATE CHANGE STREAM S FOR T")
	args := []string{"--data", filepath.Join(dir, "data"), "--database", crashDatabase, "--ddl", ddl}
	server, address := startServer(t, args...)
	args = append(args[:len(args)-2:len(args)-2], "--grpc", address)

	l := newLedger(t, address)
	l.addSplitPoints(50, ledgerOnce)
	start := l.commit(0)
	watchers := newKilledWatchers(t, dir, seed, start.Add(-time.Microsecond))
	for _, w := range watchers {
		w.start()
	}
	l.begin()
	servers := 0
	restart := func(meanwhile func()) {
		servers++
		server.Process.Kill()
		server.Wait()
		meanwhile()
		server, _ = startServer(t, args...)
	}
	total := environmentInt(t, restartKillsName, watchKills)
	for kill := range total {
		l.await(rnd.IntN(100))
		// The kill comes at a random moment after an acknowledged commit.
		time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
		w := watchers[rnd.IntN(len(watchers))]
		switch rnd.IntN(8) {
		case 0:
			restart(func() {})
		case 1:
			restart(func() { w.kill(); w.start() })
		case 2:
			w.stop()
			w.start()
		default:
			w.kill()
			w.start()
		}
		if kill == total/2 {
			l.addSplitPoints(20, 100, 130)
		}
	}
	l.end()
	t.Logf("seed %d: %d transactions, %d changes; the server was killed %d times", seed, len(l.sizes), l.changes, servers)
	for _, w := range watchers {
		w.await(l)
		w.stop()
		w.deliveries.check(l)
	}
}

func environmentInt(t *testing.T, name string, byDefault int) int {
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// killedWatcher is a crowfoot watch that is killed and started again and again.
type killedWatcher struct {
	*deliveries
	args         []string
	log          string // name of the file for its standard error
	cmd          *exec.Cmd
	ended        chan struct{} // closed when cmd has ended
	kills, stops int
}

// newKilledWatchers creates four watchers, one for each combination of a mode and a repository. Two of them have a
// command as sink; these two differ in mode and in repository.
func newKilledWatchers(t *testing.T, dir string, seed int, from time.Time) []*killedWatcher {
	var list []*killedWatcher
	for i := range 4 {
		stream, table := i&2 != 0, i&1 != 0
		command := (i&1 + i>>1 + seed%2) % 2 // one watcher of each mode and of each repository has a command
		w := &killedWatcher{args: []string{"watch", "--database", crashDatabase, "--from", from.UTC().Format(time.RFC3339Nano)}}
		mode := "poll"
		if stream {
			mode = "stream"
			w.args = append(w.args, "--stream", "S")
		} else {
			w.args = append(w.args, "T", "--interval", "5ms", "--limit", "50")
		}
		repository, sink := "file", "lines"
		if table {
			repository = "table"
			w.args = append(w.args, "--repository", "spanner")
		} else {
			w.args = append(w.args, "--repository", filepath.Join(dir, mode+".json"))
		}
		lives := filepath.Join(dir, mode+"-"+repository)
		if err := os.Mkdir(lives, 0o755); err != nil {
			t.Fatal(err)
		}
		if command == 1 {
			sink = "command"
			handler := fmt.Sprintf("exec env %s= %s='%s' '%s'", runMain, runHandler, lives, os.Args[0])
			w.args = append(w.args, "--exec", handler, "--exec-acknowledges")
		}
		w.log = lives + ".log"
		w.deliveries = &deliveries{t: t, name: fmt.Sprintf("%s, %s, %s", mode, repository, sink), dir: lives, stream: stream, command: command == 1, table: table}
		list = append(list, w)
	}
	return list
}

func (w *killedWatcher) start() {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], w.args...)
	cmd.Env = append(os.Environ(), runMain+"=1")
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if !w.command {
		out, err := createLife(w.dir)
		if err != nil {
			w.t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout = out
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	w.t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	w.cmd, w.ended = cmd, ended
}

func (w *killedWatcher) kill() {
	w.t.Helper()
	w.cmd.Process.Kill()
	if status := w.wait(); !status.Signaled() {
		w.t.Errorf("%s: the watcher has ended by itself with status %d: %s", w.name, status.ExitStatus(), w.lastLog())
	}
	w.kills++
}

// stop sends SIGTERM to the watcher, which should then shut down cleanly. There are two exceptions. If the watcher has
// not finished starting, the signal may kill it. If the watcher's command has just killed itself, the watcher may
// report that instead of shutting down cleanly.
func (w *killedWatcher) stop() {
	w.t.Helper()
	w.cmd.Process.Signal(syscall.SIGTERM)
	status := w.wait()
	switch {
	case status.Signaled():
		w.kills++
	case status.ExitStatus() != 0 && !(w.command && strings.HasSuffix(w.lastLog(), "the command has ended: signal: killed\n")):
		w.t.Errorf("%s: the watcher has ended with status %d: %s", w.name, status.ExitStatus(), w.lastLog())
	default:
		w.stops++
		w.stoppedInOrder()
	}
}

func (w *killedWatcher) wait() syscall.WaitStatus {
	<-w.ended
	return w.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func (w *killedWatcher) lastLog() string {
	text, _ := os.ReadFile(w.log)
	return string(text[max(0, len(text)-2000):])
}

// await waits until the watcher has delivered the last transaction of the ledger.
func (w *killedWatcher) await(l *ledger) {
	w.t.Helper()
	for w.read(); !w.upTo(l.last, l.sizes[l.last]); w.read() {
		select {
		case <-w.ended:
			w.t.Fatalf("%s: the watcher has ended by itself: %s", w.name, w.lastLog())
		case <-time.After(10 * time.Millisecond):
		}
	}
	w.t.Logf("%s: killed %d times, stopped %d times", w.name, w.kills, w.stops)
}

// ledger commits transactions by several writers, and records their changes.
type ledger struct {
	t      *testing.T
	client *spanner.Client
	stop   context.CancelFunc
	ctx    context.Context
	done   sync.WaitGroup

	mu      sync.Mutex
	of      map[int64][]ledgerEntry // changes by key, in the order of their commits
	sizes   map[time.Time]int       // number of changes of each transaction, by its timestamp
	changes int
	last    time.Time // timestamp of the last transaction
	exists  map[int64]bool
	rnd     [ledgerWriters]*rand.Rand
}

// ledgerEntry is one change of a key. The value is "" if the row was deleted.
type ledgerEntry struct {
	at    time.Time
	value string
}

func newLedger(t *testing.T, address string) *ledger {
	l := &ledger{t: t, client: connect(t, address), of: map[int64][]ledgerEntry{}, sizes: map[time.Time]int{}, exists: map[int64]bool{}}
	t.Cleanup(l.client.Close)
	for i := range l.rnd {
		l.rnd[i] = rand.New(rand.NewPCG(uint64(i), 11))
	}
	return l
}

// begin starts the writers, each of which writes keys of its own.
func (l *ledger) begin() {
	l.ctx, l.stop = context.WithCancel(l.t.Context())
	for w := range ledgerWriters {
		l.done.Go(func() {
			for l.ctx.Err() == nil && !l.t.Failed() {
				l.commit(w)
			}
		})
	}
}

// end stops the writers. It then commits a last transaction, with a key in each split, so that this transaction is
// delivered after all others.
func (l *ledger) end() {
	l.stop()
	l.done.Wait()
	var keys []int64
	for k := range int64(ledgerKeys * ledgerWriters) {
		keys = append(keys, k)
	}
	l.last = l.write(0, keys, nil)
}

// await waits until the writers have committed a given number of further transactions.
func (l *ledger) await(more int) {
	l.t.Helper()
	transactions := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.sizes)
	}
	for want := transactions() + more; transactions() < want; time.Sleep(time.Millisecond) {
		if l.t.Failed() {
			l.t.FailNow()
		}
	}
}

// commit commits a transaction of a writer. The transaction writes or deletes some of the writer's rows, and writes one
// new row.
func (l *ledger) commit(writer int) time.Time {
	rnd := l.rnd[writer]
	deletes := map[int64]bool{}
	keys := []int64{}
	for _, i := range rnd.Perm(ledgerKeys)[:rnd.IntN(6)] {
		k := int64(i*ledgerWriters + writer)
		keys = append(keys, k)
		l.mu.Lock()
		deletes[k] = l.exists[k] && rnd.IntN(6) == 0
		l.mu.Unlock()
	}
	return l.write(writer, keys, deletes)
}

func (l *ledger) write(writer int, keys []int64, deletes map[int64]bool) time.Time {
	l.mu.Lock()
	keys = append(keys, int64(ledgerOnce+len(l.sizes)*ledgerWriters+writer))
	l.mu.Unlock()
	value := fmt.Sprintf("%d/%d", writer, keys[len(keys)-1])
	var list []*spanner.Mutation
	for _, k := range keys {
		if deletes[k] {
			list = append(list, spanner.Delete("T", spanner.Key{k}))
			continue
		}
		list = append(list, spanner.InsertOrUpdate("T", []string{"K", "V", "Changed"}, []any{k, value, spanner.CommitTimestamp}))
	}
	at, err := l.client.Apply(context.WithoutCancel(l.t.Context()), list)
	if err != nil {
		l.t.Errorf("writer %d: %v", writer, err)
		return at
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at = at.UTC()
	l.sizes[at] += len(keys)
	l.changes += len(keys)
	for _, k := range keys {
		e := ledgerEntry{at, value}
		if deletes[k] {
			e.value = ""
		}
		l.exists[k] = !deletes[k]
		l.of[k] = append(l.of[k], e)
	}
	return at
}

// addSplitPoints splits the table T at keys, and thereby the partitions of its change stream.
func (l *ledger) addSplitPoints(keys ...int) {
	l.t.Helper()
	admin, err := database.NewDatabaseAdminClient(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	defer admin.Close()
	points := &databasepb.SplitPoints{Table: "T"}
	for _, k := range keys {
		points.Keys = append(points.Keys, &databasepb.SplitPoints_Key{KeyParts: &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(strconv.Itoa(k))}}})
	}
	if _, err := admin.AddSplitPoints(l.t.Context(), &databasepb.AddSplitPointsRequest{Database: crashDatabase, SplitPoints: []*databasepb.SplitPoints{points}}); err != nil {
		l.t.Fatal(err)
	}
}
