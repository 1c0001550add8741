package database

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestChangeStreamModel checks that change streams record all changes of the tables that they watch, while random
// transactions, schema changes, split points and restarts happen. The database itself is the model: the rows at the
// stream's beginning, with all records up to a timestamp applied, must equal the rows that a read at that timestamp
// returns.
func TestChangeStreamModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := create(t, "CREATE TABLE A (K INT64, X INT64, S STRING(MAX)) PRIMARY KEY (K)",
				"CREATE TABLE B (K INT64, L INT64, X INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT A ON DELETE CASCADE",
				"CREATE CHANGE STREAM Every FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')",
				"CREATE CHANGE STREAM Part FOR B, A(X) OPTIONS (value_capture_type = 'OLD_AND_NEW_VALUES')")
			w := &streamWorld{bed: b, begins: map[string]mvcc.Timestamp{}}
			for _, name := range []string{"Every", "Part"} {
				w.begins[name] = mvcc.TimestampOf(b.db.created)
			}
			for round := range uint64(2) {
				w.run(seed*10 + round)
				w.bed = w.reopen()
			}
			slices.Sort(w.commits)
			records := 0
			for _, s := range w.db.Catalog().Streams {
				records += w.verify(s)
			}
			if len(w.commits) == 0 || records == 0 {
				t.Errorf("%d commits, %d records", len(w.commits), records)
			}
			t.Logf("%d commits, %d schema changes, %d records", len(w.commits), len(w.changes), records)
		})
	}
}

// streamWorld is a database that several goroutines use.
type streamWorld struct {
	*bed
	mu      sync.Mutex
	commits []mvcc.Timestamp
	changes []streamChange            // schema changes, in the order in which they took effect
	begins  map[string]mvcc.Timestamp // when each stream begins, by its name
	reads   []streamRead
}

// streamRead holds the records that a reader of a stream got while other goroutines wrote.
type streamRead struct {
	stream  schema.ChangeStreamID
	end     mvcc.Timestamp
	records []streamRecord
}

// streamChange is a schema change that has taken effect, with its timestamp.
type streamChange struct {
	statement string
	at        mvcc.Timestamp
}

const (
	streamTransactions = 50 // transactions of each of the two goroutines in a round
	streamChanges      = 12 // schema changes in a round
)

var (
	streamStatements = []string{
		"INSERT OR UPDATE INTO A (K, X, S) VALUES ($N, $M, 's$N')", "INSERT OR UPDATE INTO A (K, X) VALUES ($N, $M)", "UPDATE A SET X = $M WHERE K < $N",
		"UPDATE A SET S = 'u$M' WHERE K = $N", "DELETE FROM A WHERE K = $N", "DELETE FROM A WHERE K BETWEEN $N AND $N + 2",
		"INSERT OR UPDATE INTO B (K, L, X) VALUES ($N, $M, $N), ($N, $M + 1, $M)", "UPDATE B SET X = X + 1 WHERE L > $M", "DELETE FROM B WHERE L = $M",
	}
	streamSchemaChanges = []string{
		"ALTER TABLE A ADD COLUMN D INT64 NOT NULL DEFAULT (4)", "ALTER TABLE A DROP COLUMN D", "ALTER TABLE B ADD COLUMN E STRING(MAX)", "ALTER TABLE B DROP COLUMN E",
		"CREATE INDEX ByX ON A(X)", "DROP INDEX ByX",
	}
	// streamAlterations are schema changes that do no work on rows. So they can run in the middle of a transaction.
	streamAlterations = []string{
		"CREATE CHANGE STREAM Late FOR A", "CREATE CHANGE STREAM Late FOR A", "DROP CHANGE STREAM Late", "ALTER CHANGE STREAM Every SET OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')", "ALTER CHANGE STREAM Every SET OPTIONS (value_capture_type = 'NEW_VALUES')",
		"ALTER CHANGE STREAM Every SET OPTIONS (value_capture_type = null)",
	}
)

// run runs transactions, schema changes and split points concurrently.
func (w *streamWorld) run(seed uint64) {
	var running sync.WaitGroup
	for i := range uint64(2) {
		running.Go(func() {
			rng := rand.New(rand.NewPCG(seed, i))
			for range streamTransactions {
				w.transaction(rng)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 100))
	for range streamChanges {
		w.change(rng, streamSchemaChanges)
		w.split(rng)
		w.readBeside(rng)
	}
	running.Wait()
}

// readBeside reads a stream up to now while other goroutines write, and keeps the records for verify.
func (w *streamWorld) readBeside(rng *rand.Rand) {
	list := w.db.Catalog().Streams
	s := list[rng.IntN(len(list))]
	w.mu.Lock()
	begin := w.begins[s.Name]
	w.mu.Unlock()
	end := w.oracle.Now()
	records, err := w.readStream(s, begin, end)
	if err == nil {
		w.reads = append(w.reads, streamRead{s.ID, end, records})
	} else if code := usererror.CodeOf(err); code != codes.NotFound && code != codes.OutOfRange {
		// The two codes are expected: the stream was dropped, or begins after the timestamp in the variable begin.
		w.t.Error(err)
	}
}

// transaction runs some random statements in a transaction and commits it.
func (w *streamWorld) transaction(rng *rand.Rand) {
	tx := w.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	for range 1 + rng.IntN(3) {
		sql := strings.NewReplacer("$N", fmt.Sprint(rng.IntN(12)), "$M", fmt.Sprint(rng.IntN(6))).Replace(streamStatements[rng.IntN(len(streamStatements))])
		switch _, err := w.in(tx, sql); usererror.CodeOf(err) {
		case codes.OK:
		case codes.NotFound: // a row of B without its parent
		case codes.Aborted:
			return
		default:
			w.t.Errorf("%s: %v", sql, err)
			return
		}
	}
	if rng.IntN(8) == 0 {
		w.change(rng, streamAlterations)
	}
	at, err := tx.Commit(context.Background(), nil, txn.CommitOptions{})
	switch usererror.CodeOf(err) {
	case codes.OK:
		w.mu.Lock()
		w.commits = append(w.commits, at)
		w.mu.Unlock()
	case codes.Aborted:
	default:
		w.t.Error(err)
	}
}

// change runs a random one of the given DDL statements. If the statement fails, the schema stays as it is.
func (w *streamWorld) change(rng *rand.Rand, statements []string) {
	statement := statements[rng.IntN(len(statements))]
	op := &schemachange.Operation{Progress: func(p schemachange.Progress) {
		if p.Percent < 100 {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		at := mvcc.TimestampOf(p.Commit)
		w.changes = append(w.changes, streamChange{statement, at})
		if name, ok := strings.CutPrefix(statement, "CREATE CHANGE STREAM "); ok {
			w.begins[strings.Fields(name)[0]] = at
		}
	}}
	if err := w.db.UpdateSchema(context.Background(), []string{statement}, op); err != nil && usererror.CodeOf(err) == codes.Internal {
		w.t.Error(statement, err)
	}
}

// split adds a random split point, or removes it if it exists.
func (w *streamWorld) split(rng *rand.Rand) {
	expires := time.Now().Add(time.Hour)
	if rng.IntN(3) == 0 {
		expires = time.Now() // removes the split point if it exists
	}
	p := split.Point{Table: w.db.Catalog().Table("A"), Key: []value.Value{value.OfInt64(rng.Int64N(12))}, Expires: expires}
	if err := w.db.AddSplitPoints([]split.Point{p}); err != nil {
		w.t.Error(err)
	}
}

// streamRecord is a data change record.
type streamRecord struct {
	at                  mvcc.Timestamp
	transaction         string
	sequence            string
	last                bool
	table               string
	mods                []streamMod
	op, capture         string
	records, partitions int
}

type streamMod struct{ keys, news, olds map[string]any }

// verify reads a stream and compares its records with the rows of the database. It returns the number of records.
func (w *streamWorld) verify(s *schema.ChangeStream) int {
	w.t.Helper()
	end := w.oracle.Now()
	all, err := w.readStream(s, w.begins[s.Name], end)
	if err != nil {
		w.t.Fatal(err)
	}
	w.checkTransactions(s.Name, all)
	for _, r := range w.reads {
		if r.stream != s.ID {
			continue
		}
		n, _ := slices.BinarySearchFunc(all, r.end+1, func(a streamRecord, at mvcc.Timestamp) int { return cmp.Compare(a.at, at) })
		if len(r.records)+n > 0 && !reflect.DeepEqual(r.records, all[:n]) {
			w.t.Errorf("%s: up to %v, %d records were read while others wrote, and there are %d", s.Name, r.end.Time(), len(r.records), n)
		}
	}
	r := newReplica(w.bed, s, w.begins[s.Name])
	changes := slices.DeleteFunc(slices.Clone(w.changes), func(c streamChange) bool { return c.at <= w.begins[s.Name] })
	next := 0
	for _, at := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(w.commits), timestampsOf(all)...)))) {
		if at <= w.begins[s.Name] {
			continue
		}
		for len(changes) > 0 && changes[0].at < at {
			r.change(changes[0].statement)
			changes = changes[1:]
		}
		for ; next < len(all) && all[next].at == at; next++ {
			r.apply(&all[next])
		}
		if got, want := r.text(at), w.rowsAt(at, s); got != want {
			w.t.Fatalf("%s at %v tells of\n%s\nbut there is\n%s", s.Name, at.Time(), got, want)
		}
	}
	if next < len(all) {
		w.t.Errorf("%s has %d records before its beginning", s.Name, len(all)-next)
	}
	return len(all)
}

func timestampsOf(records []streamRecord) (list []mvcc.Timestamp) {
	for i := range records {
		list = append(list, records[i].at)
	}
	return list
}

// readStream reads all partitions of a stream and returns the records in order of their commits. It reads each
// partition twice, and checks that both reads return the same records.
func (w *streamWorld) readStream(s *schema.ChangeStream, begin, end mvcc.Timestamp) (all []streamRecord, err error) {
	_, children, err := w.readPartition(s, nil, begin, end)
	if err != nil {
		return nil, err
	}
	var todo []childPartition
	visited := map[string]bool{}
	add := func(list []childPartition) {
		for _, c := range list {
			if !visited[c.token] {
				visited[c.token] = true
				todo = append(todo, c)
			}
		}
	}
	add(children)
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		records, children, err := w.readPartition(s, &p.token, p.from, end)
		if err != nil {
			return nil, err
		}
		again, _, err := w.readPartition(s, &p.token, p.from, end)
		if err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(again, records) {
			w.t.Errorf("%s has %d records in a partition and then %d", s.Name, len(records), len(again))
		}
		all = append(all, records...)
		add(children)
	}
	slices.SortFunc(all, func(a, b streamRecord) int {
		return strings.Compare(fmt.Sprintf("%020d %s", a.at, a.sequence), fmt.Sprintf("%020d %s", b.at, b.sequence))
	})
	return all, nil
}

type childPartition struct {
	token string
	from  mvcc.Timestamp
}

// readPartition reads a partition between the timestamps begin and end. If token is nil, it reads the list of the
// partitions that exist at begin.
func (w *streamWorld) readPartition(s *schema.ChangeStream, token *string, begin, end mvcc.Timestamp) (records []streamRecord, children []childPartition, err error) {
	args := ChangeStreamArguments{
		Start: value.OfTime(begin.Time()), End: value.OfTime(end.Time()), Heartbeat: value.OfInt64(changestream.MaxHeartbeat.Milliseconds()),
		Token: value.Null(value.String), ReadOptions: value.Null(value.Array),
	}
	if token != nil {
		args.Token = value.OfString(*token)
	}
	reader, err := w.db.ReadChangeStream(context.Background(), s, args, changestream.Position{}, nil)
	if err != nil {
		return nil, nil, err
	}
	for {
		ok, err := reader.Next()
		if err != nil || !ok {
			return records, children, err
		}
		v := new(structpb.Value)
		if err := proto.Unmarshal(reader.Record(), v); err != nil {
			return nil, nil, err
		}
		lists := elements(elements(v)[0])
		for _, r := range elements(lists[0]) {
			records = append(records, w.recordOf(elements(r)))
		}
		for _, r := range elements(lists[2]) {
			f := elements(r)
			for _, c := range elements(f[2]) {
				children = append(children, childPartition{elements(c)[0].GetStringValue(), w.timestamp(f[0])})
			}
		}
	}
}

func elements(v *structpb.Value) []*structpb.Value { return v.GetListValue().GetValues() }

func (w *streamWorld) timestamp(v *structpb.Value) mvcc.Timestamp {
	t, err := time.Parse(time.RFC3339Nano, v.GetStringValue())
	if err != nil {
		w.t.Error(err)
	}
	return mvcc.TimestampOf(t)
}

func (w *streamWorld) recordOf(f []*structpb.Value) streamRecord {
	r := streamRecord{
		at: w.timestamp(f[0]), sequence: f[1].GetStringValue(), transaction: f[2].GetStringValue(), last: f[3].GetBoolValue(), table: f[4].GetStringValue(),
		op: f[7].GetStringValue(), capture: f[8].GetStringValue(),
	}
	fmt.Sscan(f[9].GetStringValue(), &r.records)
	fmt.Sscan(f[10].GetStringValue(), &r.partitions)
	object := func(v *structpb.Value) (m map[string]any) {
		if err := json.Unmarshal([]byte(v.GetStringValue()), &m); err != nil {
			w.t.Error(err)
		}
		return m
	}
	for _, m := range elements(f[6]) {
		e := elements(m)
		r.mods = append(r.mods, streamMod{object(e[0]), object(e[1]), object(e[2])})
	}
	return r
}

// checkTransactions checks that no record of a transaction is missing, and that no record comes twice.
func (w *streamWorld) checkTransactions(stream string, all []streamRecord) {
	w.t.Helper()
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].at == all[0].at {
			n++
		}
		lasts := 0
		for i, r := range all[:n] {
			if r.records != n || r.sequence != fmt.Sprintf("%08d", i) || r.transaction != all[0].transaction {
				w.t.Fatalf("%s has %d records of a transaction, record %d of them says %+v", stream, n, i, r)
			}
			if r.last {
				lasts++
			}
		}
		if lasts != all[0].partitions {
			w.t.Fatalf("%s has a transaction in %d partitions, of which %d have a last record", stream, all[0].partitions, lasts)
		}
		all = all[n:]
	}
}

// replica holds rows that are computed from a stream: the rows at the stream's beginning, with the records of the
// stream applied. It has the values of the watched columns, by table and key.
type replica struct {
	*bed
	stream string
	rows   map[string]map[string]map[string]any
}

func newReplica(b *bed, s *schema.ChangeStream, at mvcc.Timestamp) *replica {
	r := &replica{b, s.Name, map[string]map[string]map[string]any{"A": {}, "B": {}}}
	c := b.catalogAt(at)
	for name := range r.rows {
		for key, row := range b.watchedAt(at, c, c.ChangeStream(s.Name), name) {
			r.rows[name][key] = row
		}
	}
	return r
}

// apply applies a record to the rows of the replica. It fails the test if the record contradicts these rows.
func (r *replica) apply(rec *streamRecord) {
	r.t.Helper()
	table := r.rows[rec.table]
	for _, m := range rec.mods {
		key := keyText(m.keys)
		row, exists := table[key]
		if exists == (rec.op == "INSERT") {
			r.t.Fatalf("%s: %s of %s %s, exists %t", r.stream, rec.op, rec.table, key, exists)
		}
		for name, old := range m.olds {
			if was := row[name]; was != old {
				r.t.Fatalf("%s: %s of %s %s says that %s was %v, it was %v", r.stream, rec.op, rec.table, key, name, old, was)
			}
		}
		switch rec.op {
		case "DELETE":
			delete(table, key)
			continue
		case "INSERT":
			row = map[string]any{}
		default:
			row = maps.Clone(row)
		}
		maps.Copy(row, m.news)
		table[key] = row
	}
}

// change removes the values of a column that a DDL statement drops.
func (r *replica) change(statement string) {
	words := strings.Fields(statement)
	if len(words) == 6 && words[3] == "DROP" {
		for _, row := range r.rows[words[2]] {
			delete(row, words[5])
		}
	}
}

// text returns the text of the replica's rows, with the watched columns that can be read at a timestamp. A column that
// no record has set is nil, like a column that is NULL.
func (r *replica) text(at mvcc.Timestamp) string {
	c := r.catalogAt(at)
	var lines []string
	for name, rows := range r.rows {
		columns := watchedColumns(c, c.ChangeStream(r.stream), name)
		for key, row := range rows {
			values := map[string]any{}
			for _, col := range columns {
				values[col] = row[col]
			}
			lines = append(lines, fmt.Sprint(name, key, values))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func keyText(keys map[string]any) string { return fmt.Sprint(keys) }

// watchedColumns returns the names of a table's non-key columns that a stream watches and that can be read.
func watchedColumns(c *schema.Catalog, s *schema.ChangeStream, table string) (names []string) {
	t := c.Table(table)
	for _, w := range c.Watchers(t) {
		if s == nil || w.Stream.ID != s.ID {
			continue
		}
		for _, col := range w.Columns {
			if t.Column(col.Name) != nil {
				names = append(names, col.Name)
			}
		}
	}
	return names
}

// rowsAt prints the rows that a read at a timestamp returns, with the columns that a stream watches.
func (w *streamWorld) rowsAt(at mvcc.Timestamp, s *schema.ChangeStream) string {
	c := w.catalogAt(at)
	var lines []string
	for _, name := range []string{"A", "B"} {
		for key, row := range w.watchedAt(at, c, c.ChangeStream(s.Name), name) {
			lines = append(lines, fmt.Sprint(name, key, row))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// watchedAt reads a table at a timestamp and returns the values of the columns that a stream watches. The keys of the
// result are the row's key and the column's name. The values are as encoding/json decodes them from a stream's records:
// strings, or nil for NULL.
func (b *bed) watchedAt(at mvcc.Timestamp, c *schema.Catalog, s *schema.ChangeStream, table string) map[string]map[string]any {
	b.t.Helper()
	found := map[string]map[string]any{}
	if !slices.ContainsFunc(c.Watchers(c.Table(table)), func(w schema.Watcher) bool { return s != nil && w.Stream.ID == s.ID }) {
		return found
	}
	snapshot, err := b.db.Transactions().Snapshot(context.Background(), txn.Bound{Kind: txn.ReadTimestamp, Time: at.Time()})
	if err != nil {
		b.t.Fatal(err)
	}
	defer snapshot.Close()
	stmt, err := b.db.Prepare(context.Background(), c, "SELECT * FROM "+table, nil, prepare.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	rows, err := stmt.Run(context.Background(), prepare.Run{View: snapshot}, time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	columns := watchedColumns(c, s, table)
	for {
		more, err := rows.Next()
		if err != nil {
			b.t.Fatal(err)
		}
		if !more {
			return found
		}
		keys, row := map[string]any{}, map[string]any{}
		for i, v := range rows.Values(nil) {
			name := stmt.Columns[i].Name
			var cell any
			switch {
			case v.IsNull():
			case v.Kind() == value.Int64:
				cell = fmt.Sprint(v.AsInt64())
			default:
				cell = v.AsString()
			}
			if c.Table(table).Column(name).KeyOrdinal >= 0 {
				keys[name] = cell
			} else if slices.Contains(columns, name) {
				row[name] = cell
			}
		}
		found[keyText(keys)] = row
	}
}
