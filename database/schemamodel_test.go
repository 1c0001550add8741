package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

const (
	// modelSeeds is the number of runs, each with its own seed and modelSteps schema changes. The environment variable
	// CROWFOOT_TEST_SCHEMA_SEEDS can name other seeds: M-N stands for the seeds from M to N-1.
	modelSeeds = 4
	modelSteps = 40
	// modelFiller is the number of extra rows in the first table, so that filling an index or a column takes several
	// steps.
	modelFiller = 1200
)

// TestSchemaModel runs random schema changes. In the middle of a schema change it runs random transactions, crashes and
// cancellations. A model knows which rows must be visible, with which values, and which constraints hold. A run is one
// goroutine whose choices depend only on the seed: the events in the middle of a change happen where the change reports
// progress, and before each batch of an index build. So the same seed repeats a failure.
func TestSchemaModel(t *testing.T) {
	from, to := uint64(0), uint64(modelSeeds)
	if text := os.Getenv("CROWFOOT_TEST_SCHEMA_SEEDS"); text != "" {
		first, last, _ := strings.Cut(text, "-")
		var err1, err2 error
		from, err1 = strconv.ParseUint(first, 10, 64)
		to, err2 = strconv.ParseUint(last, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newSchemaWorld(t, seed)
			for range modelSteps {
				if t.Failed() {
					break
				}
				w.step()
			}
			w.reopen(w.files.CrashClone(vfs.CrashCloneCfg{}))
			w.check()
			for _, found := range w.verify() {
				t.Error(found)
			}
			if t.Failed() {
				t.Logf("the last statements:\n%s", strings.Join(w.done[max(0, len(w.done)-30):], "\n"))
			}
			t.Logf("%d changes took effect, %d failed, %d were cancelled, %d crashes; %d commits, %d refused, %d aborted", w.changed, w.failed, w.cancelled, w.crashes, w.commits, w.refused, w.aborted)
		})
	}
}

// schemaWorld is a database with a model of its contents.
type schemaWorld struct {
	*bed
	rng   *rand.Rand
	files *vfs.MemFS
	store *betweenStore
	model *schemaModel

	pending  *schemaStep // the schema change that is running; nil if none
	violated bool        // whether a row has broken the conditions of the pending change at any time since it began
	after    *vfs.MemFS  // the files that a crash in the middle of the pending change has left; nil without a crash
	// deleted says that the operation which runs the schema change in pending was deleted before the crash. cancelling
	// says that this operation was cancelled.
	deleted, cancelling bool
	open                []openWrite
	past                []pastRead
	done                []string // statements that have run

	changed, failed, cancelled, crashes, commits, refused, aborted int
}

// openWrite is a transaction that has written a row and has not committed yet.
type openWrite struct {
	tx    *txn.Tx
	write rowWrite
}

// pastRead is a query with its answer at a timestamp.
type pastRead struct {
	at   mvcc.Timestamp
	sql  string
	want []string
}

// betweenStore is a store that calls a function before each commit that is not synced. Such commits are the batches of
// an index build. The field between holds the function; nil if there is none.
type betweenStore struct {
	kv.Store
	between func()
}

func (s *betweenStore) NewBatch() kv.Batch { return betweenBatch{s.Store.NewBatch(), s} }

type betweenBatch struct {
	kv.Batch
	store *betweenStore
}

func (b betweenBatch) CommitNoSync() error {
	if b.store.between != nil {
		b.store.between()
	}
	return b.Batch.CommitNoSync()
}

func newSchemaWorld(t *testing.T, seed uint64) *schemaWorld {
	w := &schemaWorld{rng: rand.New(rand.NewPCG(seed, 1)), model: newSchemaModel(), bed: &bed{t: t}}
	w.start(vfs.NewCrashableMem())
	db, err := w.CreateDatabase(t.Context(), testName, w.model.ddl())
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	a := w.model.tables[0]
	var rows []string
	for i := range int64(modelFiller) {
		k := 1000 + i
		a.rows[rowKey{k}] = a.filled(map[string]cell{"X": number(k), "Y": number(k % 13), "S": text("s")})
		rows = append(rows, fmt.Sprintf("(%d, %d, %d, 's')", k, k, k%13))
	}
	tx := w.db.Transactions().Begin(txn.Options{})
	if _, err := w.in(tx, "INSERT INTO A (K, X, Y, S) VALUES "+strings.Join(rows, ", ")); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Commit(t.Context(), nil, txn.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// start opens the store on a file system.
func (w *schemaWorld) start(files *vfs.MemFS) {
	w.t.Helper()
	disk, err := pebble.Open("data", files)
	if err != nil {
		w.t.Fatal(err)
	}
	w.files, w.store = files, &betweenStore{Store: disk}
	w.Registry, err = Open(w.store, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), NoStatistics: true})
	if err != nil {
		w.t.Fatal(err)
	}
	b := *w.bed
	w.t.Cleanup(func() { b.shut(disk) })
}

// reopen ends the process and starts a new one, which opens the store on the files that the old process has left.
func (w *schemaWorld) reopen(files *vfs.MemFS) {
	w.t.Helper()
	for _, o := range w.open {
		_ = o.tx.Rollback()
	}
	w.open = nil
	w.shut(w.store.Store)
	w.start(files)
	var err error
	if w.db, err = w.Database(testName); err != nil {
		w.t.Fatal(err)
	}
}

// step runs some transactions and one schema change, and compares the database with the model.
func (w *schemaWorld) step() {
	for range w.rng.IntN(5) {
		w.transaction()
	}
	w.change(w.model.randomStep(w.rng))
	for len(w.open) > 0 {
		w.commitOpen()
	}
	w.check()
	if w.rng.IntN(10) == 0 {
		w.reopen(w.files.CrashClone(vfs.CrashCloneCfg{}))
		w.check()
	}
}

// change runs a schema change, in the middle of which random events happen. If there is a crash, the operation resumes
// the change afterwards, unless the operation was deleted.
func (w *schemaWorld) change(s *schemaStep) {
	w.done = append(w.done, s.sql)
	w.pending, w.violated = s, s.violated(w.model)
	before := w.db.DDL()
	op := &schemachange.Operation{Name: testName + "/operations/o", Began: time.Now()}
	if err := w.PutOperation(Operation{Name: op.Name, Started: op.Began}); err != nil {
		w.t.Fatal(err)
	}
	for again := true; again && !w.t.Failed(); {
		err := w.attempt(s, op)
		if again = w.after != nil; !again {
			w.ended(s, err)
			break
		}
		w.crashes++
		w.done = append(w.done, "-- crashed")
		w.reopen(w.after)
		if got := w.db.DDL(); !slices.Equal(got, before) {
			w.t.Errorf("after a crash in %s the schema is\n%s\nand was\n%s", s.sql, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
		if again = !w.deleted; again {
			if _, ok, err := w.db.Interrupted(context.Background(), op.Name); !ok || err != nil {
				w.t.Errorf("after a crash %s does not go on", s.sql)
			}
			w.done = append(w.done, "-- goes on")
			for range w.rng.IntN(5) {
				w.transaction()
			}
		}
	}
	w.pending = nil
	if err := w.ForgetOperations(op.Name); err != nil {
		w.t.Fatal(err)
	}
}

// attempt runs a schema change until it ends or a crash happens.
func (w *schemaWorld) attempt(s *schemaStep, op *schemachange.Operation) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.after, w.deleted, w.cancelling = nil, false, false
	between := func() {
		if w.after != nil || w.cancelling {
			return
		}
		switch n := w.rng.IntN(60); {
		case n == 0:
			if w.deleted = w.rng.IntN(4) == 0; w.deleted {
				if err := w.ForgetOperations(op.Name); err != nil {
					w.t.Fatal(err)
				}
			}
			w.after = w.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: w.rng.IntN(101), RNG: w.rng})
			cancel()
		case n == 1:
			w.cancelling = true
			cancel()
		default:
			for range w.rng.IntN(10) {
				w.transaction()
			}
		}
	}
	op.Progress = func(p schemachange.Progress) {
		if p.Percent < 100 {
			between()
		}
	}
	w.store.between = between
	defer func() { w.store.between = nil }()
	return w.db.UpdateSchema(ctx, []string{s.sql}, op)
}

// ended checks that the outcome of a schema change is one that the model allows, and updates the model.
func (w *schemaWorld) ended(s *schemaStep, err error) {
	switch {
	case err == nil:
		w.changed++
		if s.violated(w.model) {
			w.t.Errorf("%s succeeded, and rows violate it", s.sql)
		}
		s.apply(w.model)
	case w.cancelling && errors.Is(err, context.Canceled):
		w.cancelled++
	case usererror.CodeOf(err) == codes.FailedPrecondition && w.violated:
		w.failed++
	default:
		w.t.Errorf("%s: %v", s.sql, err)
	}
}

// transaction writes a row in a new transaction, and commits it or leaves it open. Sometimes it commits an open
// transaction instead.
func (w *schemaWorld) transaction() {
	if len(w.open) > 0 && w.rng.IntN(2) == 0 {
		w.commitOpen()
		return
	}
	r := w.model.randomWrite(w.rng, w.pending == nil || !w.pending.cascades)
	// The transaction and the schema change run in one goroutine, so the change cannot wait for the transaction. The
	// option Background makes the transaction give way to the change.
	tx := w.db.Transactions().Begin(txn.Options{Background: true, ReadLock: txn.ReadLock(w.rng.IntN(3))})
	w.done = append(w.done, r.sql)
	_, err := w.in(tx, r.sql)
	if err == nil && w.rng.IntN(4) == 0 {
		w.open = append(w.open, openWrite{tx, r})
		return
	}
	w.commit(tx, r, err)
}

func (w *schemaWorld) commitOpen() {
	o := w.open[0]
	w.open = w.open[1:]
	w.done = append(w.done, "-- now commits "+o.write.sql)
	w.commit(o.tx, o.write, nil)
}

// commit commits a transaction whose statement returned err. It checks that the outcome is one that the model allows,
// and updates the model.
func (w *schemaWorld) commit(tx *txn.Tx, r rowWrite, err error) {
	if err == nil {
		_, err = tx.Commit(context.Background(), nil, txn.CommitOptions{})
	}
	if err != nil {
		_ = tx.Rollback()
	}
	next := w.model.with(r)
	broken := next.broken()
	expected := broken != "" || w.pending != nil && w.pending.violated(next)
	switch code := usererror.CodeOf(err); {
	case code == codes.OK:
		w.commits++
		if broken != "" {
			w.t.Errorf("%s committed, against %s", r.sql, broken)
		}
		w.model = next
		w.violated = w.violated || w.pending != nil && w.pending.violated(next)
	case code == codes.Aborted:
		w.aborted++
		w.done = append(w.done, "-- aborted")
	case expected && code != codes.Internal && code != codes.Unknown:
		w.refused++
		w.done = append(w.done, "-- refused")
	default:
		w.t.Errorf("%s: %v", r.sql, err)
	}
}

// check compares all rows and index entries with the model. It also repeats some earlier reads at their timestamps,
// which must return the same.
func (w *schemaWorld) check() {
	w.t.Helper()
	snapshot, err := w.db.Transactions().Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		w.t.Fatal(err)
	}
	at := snapshot.Timestamp()
	for _, q := range w.model.queries() {
		got, err := w.rowsAt(at, q.sql)
		if err != nil {
			w.t.Errorf("%s: %v", q.sql, err)
			continue
		}
		w.same(q.sql, got, q.want)
		if w.rng.IntN(10) == 0 {
			w.past = append(w.past, pastRead{at, q.sql, q.want})
		}
	}
	if len(w.past) > 0 {
		p := w.past[w.rng.IntN(len(w.past))]
		got, err := w.rowsAt(p.at, p.sql)
		if err != nil {
			w.t.Errorf("in the past, %s: %v", p.sql, err)
			return
		}
		w.same("in the past, "+p.sql, got, p.want)
	}
}

func (w *schemaWorld) same(what string, got, want []string) {
	w.t.Helper()
	if slices.Equal(got, want) {
		return
	}
	differ := func(a, b []string) (list []string) {
		for _, line := range a {
			if _, found := slices.BinarySearch(b, line); !found {
				list = append(list, line)
			}
		}
		return list[:min(len(list), 5)]
	}
	w.t.Errorf("%s: %d rows, want %d; only here %v, only in the model %v", what, len(got), len(want), differ(got, want), differ(want, got))
}

// rowsAt returns the rows of a query at a timestamp, with the schema of that time, sorted by their text.
func (w *schemaWorld) rowsAt(at mvcc.Timestamp, sql string) (list []string, err error) {
	ctx := context.Background()
	snapshot, err := w.db.Transactions().Snapshot(ctx, txn.Bound{Kind: txn.ReadTimestamp, Time: at.Time()})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	s, err := w.db.Prepare(ctx, w.catalogAt(at), sql, nil, prepare.Options{})
	if err != nil {
		return nil, err
	}
	rows, err := s.Run(ctx, prepare.Run{View: snapshot}, time.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for {
		more, err := rows.Next()
		if !more || err != nil {
			slices.Sort(list)
			return list, err
		}
		var line []string
		for _, v := range rows.Values(nil) {
			line = append(line, cellOf(v).String())
		}
		list = append(list, strings.Join(line, " "))
	}
}

func cellOf(v value.Value) cell {
	switch {
	case v.IsNull():
		return cell{}
	case v.Kind() == value.String:
		return text(v.AsString())
	case v.Kind() == value.Bytes:
		return text(string(v.AsBytes()))
	case v.Kind() == value.Timestamp:
		return text(v.AsTime().UTC().Format(time.RFC3339))
	}
	return number(v.AsInt64())
}
