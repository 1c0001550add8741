package crossings

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A reading is a request for rows, together with the answer that the model predicts.
type reading struct {
	what     string
	involves func(m *model) set // returns the features that take part in the reading, except those in the field found
	found    set
	want     func(m *model) []string
	ordered  bool
	get      func(at time.Time) ([][]cell, error) // runs the request; a zero at means a strong read
}

func (r *reading) features(m *model) set { return r.involves(m).with(r.found) }

const (
	readAll     = "READ"
	readKeys    = "READ by keys"
	readRange   = "READ of a range"
	readIndex   = "READ by an index"
	sql         = "SQL"
	byTable     = "base table scans"
	byIndex     = "FORCE_INDEX"
	byColumns   = "columnar copies"
	aggregate   = "aggregation"
	join        = "joins"
	partitioned = "partitions"
	staleRead   = "stale reads"
	ordered     = "ORDER BY"
)

func init() {
	add(feature{name: readAll, alone: true, read: func(w *world, s *state) *reading { return w.readKey(s.m, readAll) }})
	add(feature{name: readKeys, alone: true, read: func(w *world, s *state) *reading { return w.readKey(s.m, readKeys) }})
	add(feature{name: readRange, alone: true, read: func(w *world, s *state) *reading { return w.readKey(s.m, readRange) }})
	add(feature{name: readIndex, alone: true, read: func(w *world, s *state) *reading { return w.readByIndex(s.m) }})
	add(feature{name: sql, alone: true, read: func(w *world, s *state) *reading { return w.anyQuery(s.m) }})
	add(feature{name: byTable, read: func(w *world, s *state) *reading { return w.query(s.m, "@{FORCE_INDEX=_BASE_TABLE}", nil, of(byTable)) }})
	add(feature{name: byIndex, read: func(w *world, s *state) *reading { return w.indexQuery(s.m) }})
	add(feature{name: byColumns, read: func(w *world, s *state) *reading { return w.columnQuery(s.m) }})
	add(feature{name: aggregate, read: func(w *world, s *state) *reading { return w.aggregation(s.m) }})
	add(feature{name: join, read: func(w *world, s *state) *reading { return w.join(s.m) }})
	add(feature{name: partitioned, alone: true, read: func(w *world, s *state) *reading { return w.partition(s.m) }})
	add(feature{name: staleRead})
	add(feature{name: ordered, read: func(w *world, s *state) *reading { return w.orderedQuery(s.m) }})
}

// compare runs a reading of a state and compares the answer with the model of the state.
func (w *world) compare(r *reading, s *state) {
	w.t.Helper()
	at, stale := time.Time{}, s != w.now()
	if stale || w.rng.IntN(4) == 0 {
		at = s.from
		if !s.until.IsZero() && w.rng.IntN(2) == 0 {
			at = s.until
		}
	}
	tooOld := !at.IsZero() && at.Before(w.db.EarliestVersion())
	rows, err := r.get(at)
	w.counts["readings"]++
	what := r.what
	if !at.IsZero() {
		what = fmt.Sprintf("at %s (now %s), %s", at.Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano), r.what)
	}
	w.note("%s", what)
	if err != nil {
		if code := status.Code(err); !tooOld || code != codes.FailedPrecondition && code != codes.OutOfRange {
			w.fail("%s: %v", what, err)
		}
		return
	}
	if err := r.differs(s.m, rows); err != nil {
		w.fail("%s: %v", what, err)
	}
	features := r.features(s.m)
	if stale {
		features = features.and(staleRead)
	}
	w.met.count(features)
}

// differs returns an error that shows how rows differ from those that the model predicts; nil if they do not.
func (r *reading) differs(m *model, rows [][]cell) error {
	got, want := lines(rows), r.want(m)
	if !r.ordered {
		got, want = sorted(got), sorted(want)
	}
	if slices.Equal(got, want) {
		return nil
	}
	only := func(a, b []string) string {
		b = slices.Clone(b)
		var list []string
		for _, line := range a {
			if i := slices.Index(b, line); i >= 0 {
				b = slices.Delete(b, i, i+1)
			} else {
				list = append(list, clip(line))
			}
		}
		return strings.Join(list[:min(len(list), 5)], "\n  ")
	}
	return fmt.Errorf("%d rows, the model has %d\nonly read:\n  %s\nonly in the model:\n  %s", len(got), len(want), only(got, want), only(want, got))
}

func clip(text string) string {
	if len(text) > 400 {
		return text[:400] + "..."
	}
	return text
}

func lines(rows [][]cell) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = line(r)
	}
	return list
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

func cellsOf(rows []*structpb.ListValue) (cells [][]cell) {
	for _, r := range rows {
		var list []cell
		for _, v := range r.Values {
			list = append(list, fromWire(v))
		}
		cells = append(cells, list)
	}
	return cells
}

// selectorAt returns a selector that makes a request read at a timestamp. If at is zero, the request makes a strong
// read.
func selectorAt(at time.Time) *spannerpb.TransactionSelector {
	ro := &spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{Strong: true}}
	if !at.IsZero() {
		ro.TimestampBound = &spannerpb.TransactionOptions_ReadOnly_ReadTimestamp{ReadTimestamp: timestamppb.New(at)}
	}
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: ro}}}}
}

// sql runs a query as a role. If chunks is not nil, sql adds to it the number of operators of the plan that have read
// chunks of columnar copies.
func (w *world) sql(text, role string, at time.Time, chunks *int) ([][]cell, error) {
	session, err := w.sessionOf(w.ctx, role)
	if err != nil {
		return nil, err
	}
	req := &spannerpb.ExecuteSqlRequest{Session: session, Sql: text, Transaction: selectorAt(at)}
	if chunks != nil {
		req.QueryMode = spannerpb.ExecuteSqlRequest_PROFILE
	}
	reply, err := w.data.ExecuteSql(w.ctx, req)
	if err != nil {
		return nil, err
	}
	for _, n := range reply.GetStats().GetQueryPlan().GetPlanNodes() {
		if n.ExecutionStats.GetFields()["columnar_chunks"] != nil {
			*chunks++
		}
	}
	return cellsOf(reply.Rows), nil
}

// A target says which rows and columns of a table a reading reads.
type target struct {
	t       *table
	name    string // the table's name or its synonym
	columns []string
	where   *predicate
	index   *index
}

// target returns a random target.
func (w *world) target(m *model) *target {
	t := pick(w.rng, m.tables)
	g := &target{t: t, name: w.nameOf(t)}
	for _, c := range t.columns {
		if w.rng.IntN(3) > 0 {
			g.columns = append(g.columns, c.name)
		}
	}
	if len(g.columns) == 0 || w.rng.IntN(3) == 0 {
		g.columns = nil
		for _, c := range t.columns {
			g.columns = append(g.columns, c.name)
		}
	}
	w.rng.Shuffle(len(g.columns), func(i, k int) { g.columns[i], g.columns[k] = g.columns[k], g.columns[i] })
	if w.rng.IntN(2) == 0 {
		g.where = w.predicate(t)
	}
	return g
}

// rows returns the target's rows in the model, in the order of the index or of the key.
func (g *target) rows(m *model) (list []*row) {
	t := m.table(g.t.name)
	var by []keyPart
	if g.index != nil {
		by = g.index.key
	}
	for _, r := range m.sorted(t, by) {
		if g.where != nil && !g.where.holds(t.column(g.where.column).kind, m.value(t, r, g.where.column)) {
			continue
		}
		if g.index != nil {
			if _, filtered := m.entry(t, g.index, r); filtered {
				continue
			}
		}
		list = append(list, r)
	}
	return list
}

func (g *target) want(m *model) (list []string) {
	t := m.table(g.t.name)
	var rows [][]cell
	for _, r := range g.rows(m) {
		cells := make([]cell, len(g.columns))
		for i, name := range g.columns {
			cells[i] = m.value(t, r, name)
		}
		rows = append(rows, cells)
	}
	return lines(rows)
}

// targetFeatures returns a function that returns the features of the target's schema and rows. They take part in every
// reading of the target.
func (w *world) targetFeatures(g *target) func(m *model) set {
	events := w.events
	return func(m *model) set {
		t := m.table(g.t.name)
		s := t.features
		if g.name != t.name {
			s = s.and(synonyms)
		}
		if len(t.checks) > 0 {
			s = s.and(checks)
		}
		if len(t.foreign) > 0 {
			s = s.and(foreignKey)
		}
		if t.ttl != "" {
			s = s.and(rowDeletion)
		}
		for _, name := range g.columns {
			s = s.with(t.column(name).features)
			if e := t.column(name).computed; e != nil && e.function != "" {
				s = s.with(m.functions[e.function].features)
			}
		}
		if g.where != nil {
			s = s.with(t.column(g.where.column).features)
		}
		if g.index != nil {
			s = s.with(g.index.features)
		}
		oldest := m.events
		for _, r := range g.rows(m) {
			s = s.with(r.features)
			oldest = min(oldest, r.written)
		}
		for _, e := range events[oldest:max(oldest, min(m.events, len(events)))] {
			if e.table == 0 || e.table == t.id {
				s = s.with(e.features)
			}
		}
		return s
	}
}

// wholeTable returns a reading of all rows and columns of a table.
func (w *world) wholeTable(t *table) *reading {
	g := &target{t: t, name: t.name}
	for _, c := range t.columns {
		g.columns = append(g.columns, c.name)
	}
	return w.query(w.now().m, "@{FORCE_INDEX=_BASE_TABLE, SCAN_METHOD=NO_COLUMNAR}", g, of(byTable))
}

// sql returns the text of a query that reads the target. It puts hint after the name of the table.
func (g *target) sql(hint string) string {
	text := "SELECT " + strings.Join(g.columns, ", ") + " FROM " + g.name + hint
	var where []string
	if g.where != nil {
		where = append(where, g.where.String())
	}
	if g.index != nil && g.index.nullFiltered {
		for _, p := range g.index.key {
			where = append(where, p.column+" IS NOT NULL")
		}
	}
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	return text
}

// query returns a reading that queries a target. If g is nil, it chooses a random target.
func (w *world) query(m *model, hint string, g *target, features set) *reading {
	if g == nil {
		g = w.target(m)
	}
	text, involved := g.sql(hint), w.targetFeatures(g)
	return &reading{
		what: text, want: g.want, involves: func(m *model) set { return involved(m).with(features).and(sql) },
		get: func(at time.Time) ([][]cell, error) { return w.sql(text, "", at, nil) },
	}
}

func (w *world) anyQuery(m *model) *reading { return w.query(m, "", nil, set{}) }

// orderedQuery returns a reading by a query with ORDER BY the key. The query may scan its rows in this order or in
// another one.
func (w *world) orderedQuery(m *model) *reading {
	g := w.target(m)
	r := w.query(m, "", g, of(ordered))
	var by []string
	for _, p := range g.t.key {
		by = append(by, p.column+map[bool]string{true: " DESC"}[p.desc])
	}
	r.what += " ORDER BY " + strings.Join(by, ", ")
	r.ordered, r.get = true, func(at time.Time) ([][]cell, error) { return w.sql(r.what, "", at, nil) }
	return r
}

func (w *world) indexOf(m *model) (*target, bool) {
	g := w.target(m)
	if len(g.t.indexes) == 0 {
		return nil, false
	}
	g.index = pick(w.rng, g.t.indexes)
	return g, true
}

func (w *world) indexQuery(m *model) *reading {
	g, ok := w.indexOf(m)
	if !ok {
		return nil
	}
	if w.rng.IntN(2) == 0 {
		g.columns = g.held()
	}
	return w.query(m, "@{FORCE_INDEX="+hinted(g.index.name)+"}", g, of(byIndex))
}

// hinted returns the name of an index in the form that a hint needs. A name in a named schema becomes a string in
// quotes.
func hinted(name string) string {
	if schemaOf(name) != "" {
		return "'" + name + "'"
	}
	return name
}

// held returns the names of the columns that the index holds.
func (g *target) held() (names []string) {
	for _, p := range slices.Concat(g.index.key, g.t.key) {
		if !slices.Contains(names, p.column) {
			names = append(names, p.column)
		}
	}
	return append(names, g.index.storing...)
}

// columnQuery returns a reading by a query that scans columnar copies, if there are any.
func (w *world) columnQuery(m *model) *reading {
	g := w.target(m)
	hint := "@{SCAN_METHOD=COLUMNAR}"
	if i, ok := w.indexOf(m); ok && w.rng.IntN(2) == 0 {
		g = i
		g.columns = g.held()
		hint = "@{FORCE_INDEX=" + hinted(g.index.name) + ", SCAN_METHOD=COLUMNAR}"
	}
	r := w.query(m, hint, g, set{})
	r.get = func(at time.Time) ([][]cell, error) {
		chunks := 0
		rows, err := w.sql(r.what, "", at, &chunks)
		if chunks > 0 {
			r.found = of(byColumns)
			w.counts["readings of copies"]++
		}
		return rows, err
	}
	return r
}

// readRequest returns a reading that sends a READ request for the target.
func (w *world) readRequest(g *target, keys *spannerpb.KeySet, features set) *reading {
	involved := w.targetFeatures(g)
	req := &spannerpb.ReadRequest{Table: g.name, Columns: g.columns, KeySet: keys}
	if g.index != nil {
		req.Index = g.index.name
	}
	return &reading{
		what: "READ " + clip(req.String()), want: g.want, involves: func(m *model) set { return involved(m).with(features) }, ordered: true,
		get: func(at time.Time) ([][]cell, error) {
			session, err := w.sessionOf(w.ctx, "")
			if err != nil {
				return nil, err
			}
			req.Session, req.Transaction = session, selectorAt(at)
			reply, err := w.data.Read(w.ctx, req)
			return cellsOf(reply.GetRows()), err
		},
	}
}

func (w *world) readKey(m *model, way string) *reading {
	g := w.target(m)
	g.where = nil
	switch way {
	case readKeys:
		return w.readSome(m, g)
	case readRange:
		from, to := w.rng.Int64N(9), w.rng.Int64N(9)
		if g.t.key[0].desc {
			from, to = to, from
		}
		low, high := min(from, to), max(from, to)
		if g.t.key[0].desc != (from > to) {
			low, high = high, low // the range is empty
		}
		keys := &spannerpb.KeySet{Ranges: []*spannerpb.KeyRange{{
			StartKeyType: &spannerpb.KeyRange_StartClosed{StartClosed: wireInts(from)}, EndKeyType: &spannerpb.KeyRange_EndClosed{EndClosed: wireInts(to)},
		}}}
		r := w.readRequest(g, keys, of(readRange))
		r.want = func(m *model) (list []string) {
			t := m.table(g.t.name)
			for i, r := range g.rows(m) {
				if k := r.cells[t.key[0].column].int(); low <= k && k <= high {
					list = append(list, g.want(m)[i])
				}
			}
			return list
		}
		return r
	}
	return w.readRequest(g, &spannerpb.KeySet{All: true}, of(readAll))
}

func wireInts(n int64) *structpb.ListValue {
	return &structpb.ListValue{Values: []*structpb.Value{intKind.wire(intCell(n))}}
}

// readSome returns a reading of several keys, some of which do not exist.
func (w *world) readSome(m *model, g *target) *reading {
	keys := &spannerpb.KeySet{}
	wanted := map[string]bool{}
	for range 1 + w.rng.IntN(3) {
		cells := w.keyCells(m, g.t)
		list := new(structpb.ListValue)
		for i, p := range g.t.key {
			list.Values = append(list.Values, g.t.column(p.column).kind.wire(cells[i]))
		}
		keys.Keys = append(keys.Keys, list)
		wanted[g.t.keyText(func(name string) cell {
			return cells[slices.IndexFunc(g.t.key, func(p keyPart) bool { return p.column == name })]
		})] = true
	}
	r := w.readRequest(g, keys, of(readKeys))
	r.want = func(m *model) (list []string) {
		for i, row := range g.rows(m) {
			if wanted[m.table(g.t.name).keyOf(row)] {
				list = append(list, g.want(m)[i])
			}
		}
		return list
	}
	return r
}

func (w *world) readByIndex(m *model) *reading {
	g, ok := w.indexOf(m)
	if !ok {
		return nil
	}
	g.where, g.columns = nil, g.held()
	return w.readRequest(g, &spannerpb.KeySet{All: true}, of(readIndex))
}

// partition returns a reading that reads all partitions of a query or of a READ.
func (w *world) partition(m *model) *reading {
	g := w.target(m)
	text, involved, query := g.sql(""), w.targetFeatures(g), w.rng.IntN(2) == 0
	if !query {
		g.where = nil
	}
	return &reading{
		what: fmt.Sprintf("partitions, query %t, of %s", query, text), want: g.want, involves: func(m *model) set { return involved(m).and(partitioned) },
		get: func(at time.Time) (rows [][]cell, err error) {
			if at.IsZero() {
				at = w.strong()
			}
			session, err := w.sessionOf(w.ctx, "")
			if err != nil {
				return nil, err
			}
			tx, err := w.begin(selectorAt(at).GetSingleUse())
			if err != nil {
				return nil, err
			}
			options := &spannerpb.PartitionOptions{MaxPartitions: 4}
			if query {
				parts, err := w.data.PartitionQuery(w.ctx, &spannerpb.PartitionQueryRequest{Session: session, Transaction: tx.selector(), Sql: text, PartitionOptions: options})
				if err != nil {
					return nil, err
				}
				for _, p := range parts.Partitions {
					reply, err := w.data.ExecuteSql(w.ctx, &spannerpb.ExecuteSqlRequest{Session: session, Transaction: tx.selector(), Sql: text, PartitionToken: p.PartitionToken})
					if err != nil {
						return nil, err
					}
					rows = append(rows, cellsOf(reply.Rows)...)
				}
				return rows, nil
			}
			read := &spannerpb.PartitionReadRequest{Session: session, Transaction: tx.selector(), Table: g.name, Columns: g.columns, KeySet: &spannerpb.KeySet{All: true}, PartitionOptions: options}
			parts, err := w.data.PartitionRead(w.ctx, read)
			if err != nil {
				return nil, err
			}
			for _, p := range parts.Partitions {
				reply, err := w.data.Read(w.ctx, &spannerpb.ReadRequest{Session: session, Transaction: tx.selector(), Table: g.name, Columns: g.columns, KeySet: read.KeySet, PartitionToken: p.PartitionToken})
				if err != nil {
					return nil, err
				}
				rows = append(rows, cellsOf(reply.Rows)...)
			}
			return rows, nil
		},
	}
}

func hint(rng *rand.Rand) string {
	return pick(rng, []string{"", "@{FORCE_INDEX=_BASE_TABLE}", "@{SCAN_METHOD=COLUMNAR}", "@{SCAN_METHOD=NO_COLUMNAR}"})
}

// aggregation returns a reading that counts the rows for each value of a column, or all rows.
func (w *world) aggregation(m *model) *reading {
	g := w.target(m)
	var names []string
	for _, c := range g.t.columns {
		if c.kind != protoKind {
			names = append(names, c.name)
		}
	}
	name := pick(w.rng, names)
	g.columns = []string{name}
	text := fmt.Sprintf("SELECT %s, COUNT(*), COUNT(%s) FROM %s%s", name, name, g.name, hint(w.rng))
	whole := w.rng.IntN(2) == 0
	if whole {
		text = fmt.Sprintf("SELECT COUNT(*), COUNT(%s), COUNT(DISTINCT %s) FROM %s%s", name, name, g.name, hint(w.rng))
	}
	if g.where != nil {
		text += " WHERE " + g.where.String()
	}
	if !whole {
		text = "SELECT IF(x = 0, 0, x), n, c FROM (" + strings.Replace(text, name+", COUNT(*), COUNT("+name+")", name+" AS x, COUNT(*) AS n, COUNT("+name+") AS c", 1) + " GROUP BY x)"
		if k := g.t.column(name).kind; k != floatKind {
			text = strings.Replace(text, "IF(x = 0, 0, x)", "x", 1)
		}
	}
	involved := w.targetFeatures(g)
	return &reading{
		what: text, involves: func(m *model) set { return involved(m).and(aggregate, sql) },
		get: func(at time.Time) ([][]cell, error) { return w.sql(text, "", at, nil) },
		want: func(m *model) (list []string) {
			t := m.table(g.t.name)
			count, total, rows := map[cell]int{}, 0, g.rows(m)
			for _, r := range rows {
				v := t.column(name).kind.normal(m.value(t, r, name))
				count[v]++
				if v.set {
					total++
				}
			}
			if whole {
				different := len(count)
				if count[cell{}] > 0 {
					different--
				}
				return []string{line([]cell{intCell(int64(len(rows))), intCell(int64(total)), intCell(int64(different))})}
			}
			for v, n := range count {
				c := n
				if !v.set {
					c = 0
				}
				list = append(list, line([]cell{v, intCell(int64(n)), intCell(int64(c))}))
			}
			return list
		},
	}
}

// join returns a reading that joins two tables by columns of the same type.
func (w *world) join(m *model) *reading {
	a, b := w.target(m), w.target(m)
	k := pick(w.rng, []*kind{intKind, floatKind, stringKind})
	left, right := a.t.columnsOf(k), b.t.columnsOf(k)
	if len(left) == 0 || len(right) == 0 || len(a.t.rows)*len(b.t.rows) > 40_000 {
		return nil
	}
	x, y := pick(w.rng, left), pick(w.rng, right)
	a.where, b.where, a.columns, b.columns = nil, nil, []string{x}, []string{y}
	text := fmt.Sprintf("SELECT COUNT(*) FROM %s%s AS a JOIN%s %s%s AS b ON a.%s = b.%s", a.name, hint(w.rng),
		pick(w.rng, []string{"", "@{JOIN_METHOD=HASH_JOIN}", "@{JOIN_METHOD=APPLY_JOIN}", "@{JOIN_METHOD=MERGE_JOIN}"}), b.name, hint(w.rng), x, y)
	one, other := w.targetFeatures(a), w.targetFeatures(b)
	return &reading{
		what: text, involves: func(m *model) set { return one(m).with(other(m)).and(join, aggregate, sql) },
		get: func(at time.Time) ([][]cell, error) { return w.sql(text, "", at, nil) },
		want: func(m *model) []string {
			ta, tb := m.table(a.t.name), m.table(b.t.name)
			n, count := int64(0), map[cell]int64{}
			for _, r := range tb.rows {
				if v := m.value(tb, r, y); v.set && v.text != "NaN" {
					count[k.normal(v)]++
				}
			}
			for _, r := range ta.rows {
				if v := m.value(ta, r, x); v.set {
					n += count[k.normal(v)]
				}
			}
			return []string{line([]cell{intCell(n)})}
		},
	}
}
