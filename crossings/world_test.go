package crossings

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A world is a server, with the history of the expected contents of its database. One goroutine chooses the steps at
// random, one after the other, and waits for each.
type world struct {
	*process
	t      *testing.T
	ctx    context.Context
	rng    *rand.Rand
	met    pairs
	number int // the number in the name that newName has made last

	states []*state // from the oldest state that can still be read to the newest
	events []event
	open   []*transaction
	given  map[string]bool // values that the sequence has given out
	steps  []string
	counts map[string]int
	seed   uint64
	failed bool
}

// A state is the expected contents of the database in a span of time.
type state struct {
	m           *model
	from, until time.Time // until is zero for the newest state
	changed     bool      // whether a schema change has made the state
}

// An event is something that has happened to a table, or to all tables if table is 0.
type event struct {
	features set
	table    int
}

const diskBytes = 256 << 20

func newWorld(t *testing.T, seed uint64, met pairs) *world {
	w := &world{t: t, ctx: t.Context(), rng: rand.New(rand.NewPCG(seed, 18)), met: met, given: map[string]bool{}, counts: map[string]int{}, seed: seed}
	w.boot(disktest.New(dataDir, diskBytes))
	m := &model{functions: map[string]function{"Twice": {2, 0, set{}}, "Next": {1, 1, set{}}}, roles: map[string]map[string]bool{}}
	w.states = []*state{{m: m}}
	statements := []string{
		"CREATE PROTO BUNDLE (shop.Item)", "CREATE SCHEMA n", "CREATE SEQUENCE Numbers BIT_REVERSED_POSITIVE",
		m.functions["Next"].ddl("CREATE", "Next"), m.functions["Twice"].ddl("CREATE", "Twice"),
	}
	for i, name := range []string{"A", "B", "R"} {
		var parent *table
		if i == 1 {
			parent = m.tables[0]
		}
		tab := w.newTable(name, parent)
		// Sometimes the first table has a columnar copy. Then the method fill inserts so many rows that queries read
		// the copy without a hint.
		if m.tables = append(m.tables, tab); i == 0 && w.rng.IntN(3) == 0 {
			tab.columnar = "enabled"
		}
		statements = append(statements, tab.ddl())
		if tab.columnar != "" {
			statements = append(statements, "ALTER TABLE "+name+" SET OPTIONS (columnar_policy = 'enabled')")
		}
	}
	var err error
	if w.db, err = w.registry.CreateDatabase(w.ctx, databaseName, statements, itemDescriptors(t)); err != nil {
		t.Fatal(err)
	}
	w.note("%s", strings.Join(statements, ";\n"))
	w.states[0].from = w.strong()
	if m.tables[0].columnar != "" {
		w.fill()
	}
	w.beginning()
	return w
}

// beginning creates some objects that most histories should contain from the start.
func (w *world) beginning() {
	for range 3 {
		if c := w.createIndex(w.now().m); c != nil {
			w.alter(c)
		}
	}
	for range 4 {
		if c := w.changeRole(); c != nil && w.rng.IntN(2) == 0 {
			w.alter(c)
		}
		if c := w.changeView(); c != nil && w.rng.IntN(2) == 0 {
			w.alter(c)
		}
	}
}

// boot starts a server on the files of a disk.
func (w *world) boot(disk *disktest.Disk) {
	w.t.Helper()
	p, err := start(disk, dataDir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.process, w.open = p, nil
}

func (w *world) now() *state { return w.states[len(w.states)-1] }

// note records a step. If the test fails, it prints the recorded steps.
func (w *world) note(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.failed = true
	w.t.Errorf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// step does one random thing, or several one after the other.
func (w *world) step() {
	w.counts["steps"]++
	switch n := w.rng.IntN(20); {
	case n < 8:
		w.writeOne()
	case n < 10:
		w.transact()
	case n < 13:
		w.changeOne()
	case n < 14:
		w.happenOne()
	}
	for range 2 + w.rng.IntN(3) {
		w.readOne()
	}
}

// drawn chooses random features for which takes(feature) is true, and calls f with each of them. It stops when f
// returns true, or after 20 calls.
func (w *world) drawn(takes func(f *feature) bool, f func(*feature) bool) {
	var list []*feature
	for i := range features {
		if takes(&features[i]) {
			list = append(list, &features[i])
		}
	}
	for range 20 {
		if f(pick(w.rng, list)) {
			return
		}
	}
}

func (w *world) writeOne() {
	w.drawn(func(f *feature) bool { return f.write != nil }, func(f *feature) bool {
		x := f.write(w)
		if x == nil {
			return false
		}
		w.do(x)
		return true
	})
}

func (w *world) changeOne() {
	w.drawn(func(f *feature) bool { return f.change != nil }, func(f *feature) bool {
		c := f.change(w)
		if c == nil {
			return false
		}
		w.alter(c)
		return true
	})
}

func (w *world) happenOne() {
	w.drawn(func(f *feature) bool { return f.happen != nil }, func(f *feature) bool { f.happen(w); return true })
}

// readOne chooses a random reading of a state, mostly of the newest one, runs it and compares the answer with the
// model.
func (w *world) readOne() {
	s := w.now()
	if w.rng.IntN(4) == 0 {
		s = pick(w.rng, w.states)
	}
	w.drawn(func(f *feature) bool { return f.read != nil }, func(f *feature) bool {
		r := f.read(w, s)
		if r == nil {
			return false
		}
		w.compare(r, s)
		return true
	})
}

// became adds a state to the history. The parameter at is the timestamp from which the state is valid.
func (w *world) became(m *model, at time.Time) {
	if last := w.now(); !at.After(last.from) {
		if !sameRows(last.m, m) {
			w.fail("a commit at %s comes after one at %s", at.Format(time.RFC3339Nano), last.from.Format(time.RFC3339Nano))
		}
		last.m = m // a transaction without changes has the timestamp of its snapshot
		return
	}
	m.committed(at)
	if w.now().until.IsZero() {
		w.now().until = at.Add(-time.Microsecond)
	}
	if m.streamed.Equal(time.Unix(0, 0)) {
		m.streamed = at
	}
	w.note("-- from %s on", at.Format(time.RFC3339Nano))
	w.states = append(w.states, &state{m: m, from: at})
	w.learn(m)
	w.settle()
}

// sameRows reports whether two models have the same rows.
func sameRows(a, b *model) bool {
	return len(a.tables) == len(b.tables) && missingRecord(a, b, nil) == ""
}

// happened records an event. The event takes part in later readings of the rows that exist now, and not in readings of
// rows that are written later.
func (w *world) happened(features set, table int) {
	w.events = append(w.events, event{features, table})
	m := w.now().m.clone()
	m.events = len(w.events)
	w.states[len(w.states)-1].m = m
}

// alter changes the schema.
func (w *world) alter(c *change) (before, after *model) {
	w.t.Helper()
	w.endAll()
	before = w.now().m
	w.note("%s", strings.Join(c.statements, ";\n"))
	var at time.Time
	err := w.db.UpdateSchema(w.ctx, c.statements, &schemachange.Operation{Progress: func(p schemachange.Progress) {
		if p.Percent == 100 {
			at = p.Commit
		}
	}})
	violated := c.violated != nil && c.violated(before)
	if err != nil {
		w.counts["refused changes"]++
		w.note("-- %v", err)
		if code := usererror.CodeOf(err); !violated || code == codes.Internal || code == codes.Unknown {
			w.fail("%s: %v", strings.Join(c.statements, "; "), err)
		}
		return before, before
	}
	w.counts["changes"]++
	if violated {
		w.fail("%s succeeded, and rows violate it", strings.Join(c.statements, "; "))
	}
	after = before.clone()
	c.apply(after)
	w.events = append(w.events, event{c.features, 0})
	after.events = len(w.events)
	w.became(after, at)
	for _, s := range w.states {
		if s.from.Equal(at) {
			s.changed = true
		}
	}
	return before, after
}

// do runs a write and compares the outcome with the model.
func (w *world) do(x *write) (before, after *model) {
	w.t.Helper()
	before, after = w.now().m, w.now().m.clone()
	var refused error
	for _, o := range x.operations {
		if refused = after.apply(o, x.features); refused != nil {
			break
		}
	}
	if refused == nil {
		refused = after.broken(true)
	}
	if refused != nil && !x.atomic {
		return before, before
	}
	w.note("%s: %s", x.way, text(x.operations))
	begun := w.strong()
	at, err := x.run()
	if x.untimed && err == nil {
		w.now().until = begun
	}
	w.ended(x.way+": "+text(x.operations), after, at, err, refused)
	if err != nil {
		return before, before
	}
	return before, after
}

// ended compares the outcome of a write or transaction with the expected one. The parameter after is the model after a
// success. The parameter refused is the expected error, or nil.
func (w *world) ended(what string, after *model, at time.Time, err, refused error) {
	w.t.Helper()
	switch code := status.Code(err); {
	case err == nil && refused == nil:
		w.counts["commits"]++
		w.became(after, at)
	case err == nil:
		w.fail("%s\ncommitted, and had to be refused: %v", what, refused)
	case code == codes.Aborted && len(w.open) > 0:
		w.counts["aborted"]++
		w.note("-- %v", err)
	case refused != nil && code != codes.Internal && code != codes.Unknown && code != codes.Aborted:
		w.counts["refused"]++
		w.note("-- refused: %v", err)
	default:
		w.fail("%s: %v; by the model: %v", what, err, refused)
	}
}

// learn reads from the server which values the sequence has given to rows. No value may occur twice.
func (w *world) learn(m *model) {
	w.t.Helper()
	for _, t := range m.tables {
		for _, c := range t.columns {
			if !c.sequence || !slices.ContainsFunc(m.sorted(t, nil), func(r *row) bool { return r.cells[c.name] == unknown }) {
				continue
			}
			columns := []string{c.name}
			for _, p := range t.key {
				columns = append(columns, p.column)
			}
			rows, err := w.sql("SELECT "+strings.Join(columns, ", ")+" FROM "+t.name+"@{FORCE_INDEX=_BASE_TABLE}", "", time.Time{}, nil)
			if err != nil {
				w.fail("%v", err)
			}
			for _, cells := range rows {
				key := t.keyText(func(name string) cell { return cells[slices.Index(columns, name)] })
				r := t.rows[key]
				if r == nil || r.cells[c.name] != unknown {
					continue
				}
				if w.given[cells[0].text] {
					w.fail("the sequence gives %s again", cells[0])
				}
				w.given[cells[0].text] = true
				// This does not change older states: the row r was made for this state.
				r.cells[c.name] = cells[0]
			}
		}
	}
}

// settle waits until expired rows are deleted.
func (w *world) settle() {
	m := w.now().m.clone()
	deleted := false
	for _, t := range m.tables {
		for _, r := range m.sorted(t, nil) {
			if t.ttl == "" {
				continue
			}
			if v := m.value(t, r, t.ttl); v.set && v.time().Before(time.Now().Add(-24*time.Hour)) {
				if err := m.remove(t, r); err != nil {
					w.fail("%v", err)
				}
				deleted = true
			}
		}
	}
	if !deleted {
		return
	}
	w.endAll()
	w.note("-- rows expire")
	w.now().until = w.strong()
	time.Sleep(3 * time.Minute)
	w.events = append(w.events, event{of(rowDeletion), 0})
	m.events = len(w.events)
	w.states = append(w.states, &state{m: m, from: w.strong()})
}

// strong returns a timestamp at or after that of every commit.
func (w *world) strong() time.Time { return w.db.Transactions().Now().Time() }

// forget removes the states that are too old to be read.
func (w *world) forget() {
	earliest := w.db.EarliestVersion()
	for len(w.states) > 1 && w.states[0].until.Before(earliest) {
		w.states = w.states[1:]
	}
}

// advance advances the clock by d.
func (w *world) advance(d time.Duration) {
	w.note("-- %v pass", d)
	time.Sleep(d)
	w.forget()
}

// crash starts a server on the files that remain after the server was killed.
func (w *world) crash(files *disktest.Disk) {
	w.t.Helper()
	if err := w.stop(); err != nil {
		w.note("-- stopped: %v", err)
	}
	w.boot(files)
}

// agrees returns an error if the present rows of a table differ from those of the model.
func (w *world) agrees(m *model) error {
	for _, t := range m.tables {
		r := w.wholeTable(t)
		rows, err := r.get(time.Time{})
		if err != nil {
			return err
		}
		if err := r.differs(m, rows); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// close ends the run: it kills the server and checks everything once more.
func (w *world) close() {
	w.t.Helper()
	w.idle()
	w.crash(w.disk.Crash(vfs.CrashCloneCfg{}))
	if err := w.agrees(w.now().m); err != nil {
		w.fail("after all: %v", err)
	}
	w.check(w.disk.Crash(vfs.CrashCloneCfg{}))
}
