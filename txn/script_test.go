package txn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestScripts checks the results of transactions in the scripts in testdata, one file for each anomaly or rule. A
// directive is a list of steps, one on each line, and starts with an empty database. The directive "run" takes the
// steps in the default mode, and "modes" takes them in each mode in turn. A step is one of:
//
//	NAME get KEY... [exclusive|check]
//	NAME scan START END [reverse] [exclusive|check] [limit=N]   END is excluded; a limit makes the scan partial
//	NAME dml-scan START END            scans as a DML statement does
//	NAME put KEY=VALUE... | delete KEY...
//	NAME commit [KEY=VALUE|KEY]...     the arguments are mutations: KEY without VALUE is deleted
//	NAME rollback | savepoint | rollback-to
//	NAME begin [retry=NAME|background] a transaction without this step begins with its first step
//	commit KEY=VALUE|KEY ...           commits a new transaction
//	read KEY... | read-at NAME KEY...  reads in a snapshot: strong, or at the timestamp of NAME's commit
//	clock DURATION                     moves the clock forward
//	collect                            deletes versions that are more than an hour old
//
// A step that must wait is reported as "waits". Its result is reported below the step that ended the wait.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := new(strings.Builder)
			all := modes[:1]
			if d.Cmd == "modes" {
				all = modes
			}
			for _, mode := range all {
				if len(all) > 1 {
					fmt.Fprintf(out, "%s:\n", mode.name)
				}
				synctest.Test(t, func(t *testing.T) {
					s := newScript(t, mode.options, out)
					for _, line := range strings.Split(d.Input, "\n") {
						s.step(strings.Fields(line))
					}
					s.close()
				})
			}
			return out.String()
		})
	})
}

var modes = []struct {
	name    string
	options Options
}{
	{"serializable pessimistic", Options{}},
	{"serializable optimistic", Options{ReadLock: Optimistic}},
	{"repeatable read optimistic", Options{Isolation: RepeatableRead}},
	{"repeatable read pessimistic", Options{Isolation: RepeatableRead, ReadLock: Pessimistic}},
}

// fakeClock is a clock that stands still until advance is called.
type fakeClock struct{ micros atomic.Int64 }

func (c *fakeClock) now() time.Time { return time.UnixMicro(c.micros.Load()) }

func (c *fakeClock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// script is one run of a directive: a database and its transactions.
type script struct {
	t       *testing.T
	out     *strings.Builder
	clock   *fakeClock
	store   kv.Store
	m       *Manager
	options Options
	txs     map[string]*Tx
	saved   map[string]Savepoint
	pending []*pendingStep
}

// pendingStep is a step that waits for a lock. result will receive its result.
type pendingStep struct {
	text   string
	result chan string
}

func newScript(t *testing.T, options Options, out *strings.Builder) *script {
	s := &script{t: t, out: out, clock: new(fakeClock), options: options, txs: map[string]*Tx{}, saved: map[string]Savepoint{}}
	s.clock.micros.Store(1_000_000)
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	s.store = store
	s.m = newManager(t, store, s.clock.now)
	return s
}

func newManager(tb testing.TB, store kv.Store, clock func() time.Time) *Manager {
	tb.Helper()
	oracle, err := NewOracle(store, clock)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(oracle.stop)
	return NewManager(mvcc.New(store).In(1), oracle, Config{})
}

// stop makes the oracle unusable without lowering its bound on disk, as a crash would. The caller closes the store
// next.
func (o *Oracle) stop() {
	o.reserving.Lock()
	defer o.reserving.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = cmp.Or(o.failed, errClosed)
}

func (s *script) close() {
	for _, tx := range s.txs {
		_ = tx.Rollback()
	}
	s.settle()
	if n := len(s.m.locks.waiting) + s.m.locks.points.Len(); n != 0 || s.m.locks.ranges.root != nil {
		s.t.Errorf("%d locks were left", n)
	}
	s.m.oracle.stop()
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

func key(name string) []byte { return append([]byte(name), 0) }

func (s *script) step(words []string) {
	text := strings.Join(words, " ")
	switch words[0] {
	case "clock":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.clock.advance(d)
		fmt.Fprintln(s.out, text)
		time.Sleep(recheck) // so that waiting requests check for idle transactions, which they do at this interval
	case "collect":
		fmt.Fprintln(s.out, text)
		if _, err := s.m.Collect(context.Background(), s.m.Earliest(), nil); err != nil {
			s.t.Error(err)
		}
	case "commit":
		tx := s.m.Begin(s.options)
		s.txs[text] = tx
		s.start(text, func() string { return commitStep(tx, words[1:]) })
	case "read":
		snap, err := s.m.Snapshot(context.Background(), Bound{})
		fmt.Fprintf(s.out, "%s: %s\n", text, getAll(snap, err, words[1:], table.LockShared))
	case "read-at":
		ts := s.txs[words[1]].ts
		snap, err := s.m.Snapshot(context.Background(), Bound{Kind: ReadTimestamp, Time: ts.Time()})
		fmt.Fprintf(s.out, "%s: %s\n", text, getAll(snap, err, words[2:], table.LockShared))
	default:
		s.txStep(words[0], text, words[1:])
	}
	s.settle()
}

func (s *script) txStep(name, text string, words []string) {
	tx := s.txs[name]
	if tx == nil {
		options := s.options
		switch {
		case len(words) != 2 || words[0] != "begin":
		case words[1] == "background":
			options.Background = true
		default:
			options.Previous = s.txs[strings.TrimPrefix(words[1], "retry=")].Age()
		}
		tx = s.m.Begin(options)
		s.txs[name] = tx
	}
	switch words[0] {
	case "begin":
	case "savepoint":
		s.saved[name] = tx.Savepoint()
	case "rollback-to":
		tx.RollbackTo(s.saved[name])
	default:
		s.start(text, func() string { return txStep(tx, words) })
	}
}

func txStep(tx *Tx, words []string) string {
	ctx := context.Background()
	lock := table.LockShared
	args := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool {
		switch w {
		case "exclusive":
			lock = table.LockExclusive
		case "check":
			lock = table.LockCheck
		default:
			return false
		}
		return true
	})
	switch words[0] {
	case "get":
		return getAll(tx, nil, args, lock)
	case "scan":
		return scanAll(tx, args, lock)
	case "dml-scan":
		r := tx.Request()
		r.DML = true
		return scanAll(r, args, lock)
	case "put", "delete":
		return describe(apply(ctx, tx, args))
	case "commit":
		return commitStep(tx, args)
	case "rollback":
		return describe(tx.Rollback())
	}
	return "unknown step"
}

func apply(ctx context.Context, w table.Writer, writes []string) error {
	for _, write := range writes {
		k, v, live := strings.Cut(write, "=")
		var err error
		if live {
			err = w.Put(ctx, key(k), []byte(v), nil, nil)
		} else {
			err = w.Delete(ctx, key(k))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func commitStep(tx *Tx, writes []string) string {
	ctx := context.Background()
	_, err := tx.Commit(ctx, func(w table.Writer) error { return apply(ctx, w, writes) }, CommitOptions{})
	return describe(err)
}

func describe(err error) string {
	if err == nil {
		return "ok"
	}
	user, ok := usererror.As(err)
	if !ok {
		return "error: " + err.Error()
	}
	if user.RetryAfter < 0 || (user.RetryAfter == 0) == (user.Code.String() == "Aborted") {
		return "bad retry delay: " + user.RetryAfter.String()
	}
	return user.Code.String() + ": " + user.Message
}

func getAll(view table.View, err error, keys []string, lock table.Lock) string {
	var found []string
	for _, k := range keys {
		var val []byte
		var ok bool
		if err == nil {
			val, ok, err = view.Get(context.Background(), key(k), lock)
		}
		switch {
		case err != nil:
			return describe(err)
		case ok:
			found = append(found, k+"="+string(val))
		default:
			found = append(found, k+" absent")
		}
	}
	return strings.Join(found, " ")
}

func scanAll(view table.View, args []string, lock table.Lock) string {
	limit := 1000
	opts := table.ScanOptions{Lock: lock}
	for _, arg := range args[2:] {
		opts.Reverse = opts.Reverse || arg == "reverse"
		n, _ := fmt.Sscanf(arg, "limit=%d", &limit)
		opts.Partial = opts.Partial || n == 1
	}
	c, err := view.Scan(context.Background(), table.Span{Start: key(args[0]), End: key(args[1])}, opts)
	if err != nil {
		return describe(err)
	}
	defer c.Close()
	found := []string{}
	for len(found) < limit && c.Next() {
		found = append(found, strings.TrimSuffix(string(c.Key()), "\x00")+"="+string(c.Value()))
	}
	if c.Err() != nil {
		return describe(c.Err())
	}
	return "[" + strings.Join(found, " ") + "]"
}

// start runs a step in a goroutine, and returns when the step has ended or waits for a lock.
func (s *script) start(text string, run func() string) {
	p := &pendingStep{text: text, result: make(chan string, 1)}
	go func() { p.result <- run() }()
	synctest.Wait()
	select {
	case result := <-p.result:
		fmt.Fprintf(s.out, "%s: %s\n", text, result)
	default:
		fmt.Fprintf(s.out, "%s: waits\n", text)
		s.pending = append(s.pending, p)
	}
}

// settle reports the results of the pending steps that have ended.
func (s *script) settle() {
	synctest.Wait()
	s.pending = slices.DeleteFunc(s.pending, func(p *pendingStep) bool {
		select {
		case result := <-p.result:
			fmt.Fprintf(s.out, "  %s: %s\n", p.text, result)
			return true
		default:
			return false
		}
	})
}
