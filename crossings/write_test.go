package crossings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A write is a transaction with some operations. The field way says how the operations are sent, for example as
// mutations.
type write struct {
	way        string
	features   set
	operations []*operation
	run        func() (at time.Time, err error)
	// atomic says that the server makes either all changes of the write or none. Other writes are only run if the model
	// does not expect an error.
	atomic bool
	// untimed says that the function run may return a later timestamp than that of the commit.
	untimed bool
}

const (
	mutations      = "mutations"
	dml            = "DML"
	batchDML       = "batch DML"
	partitionedDML = "partitioned DML"
	manyRows       = "a thousand rows"
)

func init() {
	add(feature{name: mutations, write: (*world).mutate})
	add(feature{name: dml, write: (*world).runDML})
	add(feature{name: batchDML, write: (*world).runBatch})
	add(feature{name: partitionedDML, write: (*world).runPartitioned})
	add(feature{name: manyRows})
}

// text returns operations as text.
func text(list []*operation) string {
	var texts []string
	for _, o := range list {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, "; ")
}

// operation returns a random operation whose verb is one of kinds.
func (w *world) operation(m *model, kinds ...verb) *operation {
	t := pick(w.rng, m.tables)
	o := &operation{verb: pick(w.rng, kinds), table: t.name}
	switch o.verb {
	case updateWhere, removeWhere:
		o.where = w.predicate(t)
		if o.verb == updateWhere {
			var free []*column
			for _, c := range t.writable() {
				if !t.inKey(c.name) && !c.commit {
					free = append(free, c)
				}
			}
			c := pick(w.rng, free)
			o.column, o.to = c.name, w.value(c)
		} else if t.columnar != "" && len(t.rows) > 500 && (o.where == nil || len(m.matching(t, o.where)) > 500) && w.rng.IntN(4) > 0 {
			return nil // if there are many rows, mostly keep them
		}
		return o
	case remove:
		for _, p := range t.key {
			o.columns = append(o.columns, p.column)
		}
		for range 1 + w.rng.IntN(2) {
			o.rows = append(o.rows, w.keyCells(m, t))
		}
		return o
	}
	for _, p := range t.key {
		o.columns = append(o.columns, p.column)
	}
	for _, c := range t.writable() {
		if !t.inKey(c.name) && (c.notNull && c.standard == nil || w.rng.IntN(4) > 0) {
			o.columns = append(o.columns, c.name)
		}
	}
	if len(o.columns) == len(t.key) && o.verb == update {
		return nil
	}
	for range 1 + w.rng.IntN(4) {
		cells := w.keyCells(m, t)
		for _, name := range o.columns[len(t.key):] {
			cells = append(cells, w.value(t.column(name)))
		}
		o.rows = append(o.rows, cells)
	}
	return o
}

// value returns a random value for a column.
func (w *world) value(c *column) cell {
	if c.commit {
		return pick(w.rng, []cell{commitTime, commitTime, {}, textCell("1970-01-01T00:00:00Z")})
	}
	for {
		if v := c.kind.random(w.rng); v.set || !c.notNull {
			return v
		}
	}
}

// keyCells returns a random key, in the order of the table's key columns. Often it is the key of an existing row or,
// in a child table, a key under an existing parent row.
func (w *world) keyCells(m *model, t *table) []cell {
	from := t
	if t.parent != "" && w.rng.IntN(8) > 0 {
		from = m.table(t.parent)
	}
	if w.rng.IntN(2) == 0 {
		from = t
	}
	cells := make([]cell, len(t.key))
	for i, p := range t.key {
		if c := t.column(p.column); c.kind == intKind && c.notNull {
			cells[i] = intCell(w.rng.Int64N(8))
		} else {
			cells[i] = c.kind.random(w.rng)
		}
	}
	if rows := m.sorted(from, nil); len(rows) > 0 && (from != t || w.rng.IntN(2) == 0) {
		r := pick(w.rng, rows)
		for i, p := range from.key {
			cells[i] = r.cells[p.column]
		}
	}
	return cells
}

func (w *world) predicate(t *table) *predicate {
	var columns []*column
	for _, c := range t.columns {
		if c.kind != protoKind {
			columns = append(columns, c)
		}
	}
	c := pick(w.rng, columns)
	p := &predicate{column: c.name, operator: pick(w.rng, []string{"=", "=", "<", ">=", "!=", "IS NULL"})}
	for !p.value.set {
		p.value = c.kind.random(w.rng)
	}
	if c.name == "K" {
		p.value = intCell(w.rng.Int64N(8))
	}
	p.literal = c.kind.sql(p.value)
	return p
}

// operationsOf returns a write with up to n random operations whose verbs are among kinds; nil if none is possible. The
// parameter way names the feature for the way of writing, such as mutations or DML.
func (w *world) operationsOf(n int, way string, atomic bool, kinds ...verb) *write {
	m := w.now().m
	x := &write{way: way, features: of(way), atomic: atomic}
	for range n {
		if o := w.operation(m, kinds...); o != nil {
			x.operations = append(x.operations, o)
		}
	}
	if len(x.operations) == 0 {
		return nil
	}
	return x
}

// valueFeatures returns the features of a value.
func valueFeatures(c *column, v cell) (s set) {
	switch {
	case !v.set:
		return of(nulls)
	case v == commitTime || v == unknown:
		return c.features
	case c.kind == floatKind && (v.text == "-0" || v.text == "0"):
		return of(signedZero)
	case c.kind == floatKind && (v.text == "NaN" || strings.HasSuffix(v.text, "Infinity")):
		return of(nan)
	case v.text == "":
		return of(empty)
	case len(v.text) > 500:
		return of(longText)
	case c.kind == timeKind && (v.text[0] == '0' || v.text[0] == '9'), c.kind == intKind && len(v.text) > 15, c.kind == numericKind && len(v.text) > 20:
		return of(extreme)
	}
	return s
}

func (w *world) mutate() *write {
	x := w.operationsOf(1+w.rng.IntN(3), mutations, true, insert, insertOrUpdate, insertOrUpdate, update, replace, remove)
	if x == nil {
		return nil
	}
	x.run = func() (time.Time, error) { return w.commit(w.mutations(x.operations), nil) }
	return x
}

// mutations returns operations as mutations of the API.
func (w *world) mutations(list []*operation) (muts []*spannerpb.Mutation) {
	m := w.now().m
	for _, o := range list {
		t := m.table(o.table)
		body := &spannerpb.Mutation_Write{Table: o.table, Columns: o.columns}
		for _, cells := range o.rows {
			body.Values = append(body.Values, wireRow(t, o.columns, cells))
		}
		mut := new(spannerpb.Mutation)
		switch o.verb {
		case insert:
			mut.Operation = &spannerpb.Mutation_Insert{Insert: body}
		case insertOrUpdate:
			mut.Operation = &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: body}
		case update:
			mut.Operation = &spannerpb.Mutation_Update{Update: body}
		case replace:
			mut.Operation = &spannerpb.Mutation_Replace{Replace: body}
		case remove:
			mut.Operation = &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: o.table, KeySet: &spannerpb.KeySet{Keys: body.Values}}}
		}
		muts = append(muts, mut)
	}
	return muts
}

func wireRow(t *table, columns []string, cells []cell) *structpb.ListValue {
	list := new(structpb.ListValue)
	for i, c := range cells {
		if c == commitTime {
			c = textCell("spanner.commit_timestamp()")
		}
		list.Values = append(list.Values, t.column(columns[i]).kind.wire(c))
	}
	return list
}

func readWrite() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}}}
}

// commit commits mutations. If id is not nil, it is the id of a transaction, whose writes are committed with the
// mutations. If id is nil, the mutations are a transaction of their own.
func (w *world) commit(muts []*spannerpb.Mutation, id []byte) (at time.Time, err error) {
	session, err := w.sessionOf(w.ctx, "")
	if err != nil {
		return at, err
	}
	req := &spannerpb.CommitRequest{Session: session, Mutations: muts}
	if id == nil {
		req.Transaction = &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite()}
	} else {
		req.Transaction = &spannerpb.CommitRequest_TransactionId{TransactionId: id}
	}
	for {
		reply, err := w.data.Commit(w.ctx, req)
		if err != nil {
			return at, err
		}
		if token := reply.GetPrecommitToken(); token != nil {
			req.PrecommitToken, req.Mutations = token, nil
			continue
		}
		return reply.CommitTimestamp.AsTime(), nil
	}
}

// A statement is a DML statement with its parameters.
type statement struct {
	sql    string
	params map[string]parameter
}

type parameter struct {
	kind *kind
	cell cell
}

// statements returns operations as DML statements, whose values are parameters or literals.
func (w *world) statements(list []*operation) (all []statement) {
	m := w.now().m
	for _, o := range list {
		t := m.table(o.table)
		s := statement{params: map[string]parameter{}}
		bound := w.rng.IntN(2) == 0
		operand := func(c *column, v cell) string {
			switch {
			case v == commitTime:
				return "PENDING_COMMIT_TIMESTAMP()"
			case !bound:
				return c.kind.sql(v)
			}
			name := fmt.Sprint("p", len(s.params))
			s.params[name] = parameter{c.kind, v}
			return "@" + name
		}
		switch o.verb {
		case insert, insertOrUpdate:
			var rows []string
			for _, cells := range o.rows {
				var words []string
				for i, v := range cells {
					words = append(words, operand(t.column(o.columns[i]), v))
				}
				rows = append(rows, "("+strings.Join(words, ", ")+")")
			}
			s.sql = map[verb]string{insert: "INSERT", insertOrUpdate: "INSERT OR UPDATE"}[o.verb] + " INTO " + w.nameOf(t) + " (" + strings.Join(o.columns, ", ") + ") VALUES " + strings.Join(rows, ", ")
		case updateWhere:
			s.sql = "UPDATE " + w.nameOf(t) + " SET " + o.column + " = " + operand(t.column(o.column), o.to) + " WHERE " + o.where.sql(t, operand)
		case removeWhere:
			s.sql = "DELETE FROM " + w.nameOf(t) + " WHERE " + o.where.sql(t, operand)
		}
		all = append(all, s)
	}
	return all
}

// sql returns the predicate as SQL. The function operand returns the SQL text of the predicate's constant.
func (p *predicate) sql(t *table, operand func(*column, cell) string) string {
	if p.operator == "IS NULL" {
		return p.column + " IS NULL"
	}
	return p.column + " " + p.operator + " " + operand(t.column(p.column), p.value)
}

// nameOf returns the name of a table, or sometimes its synonym.
func (w *world) nameOf(t *table) string {
	if t.synonym != "" && w.rng.IntN(3) == 0 {
		return t.synonym
	}
	return t.name
}

func (s *statement) bind() (params *structpb.Struct, types map[string]*spannerpb.Type) {
	params, types = &structpb.Struct{Fields: map[string]*structpb.Value{}}, map[string]*spannerpb.Type{}
	for name, p := range s.params {
		params.Fields[name], types[name] = p.kind.wire(p.cell), p.kind.spannerType()
	}
	return params, types
}

func (w *world) runDML() *write {
	x := w.operationsOf(1+w.rng.IntN(2), dml, true, insert, insertOrUpdate, insertOrUpdate, updateWhere, updateWhere, removeWhere)
	if x == nil {
		return nil
	}
	x.run = func() (at time.Time, err error) {
		tx, err := w.begin(readWrite())
		if err != nil {
			return at, err
		}
		for _, s := range w.statements(x.operations) {
			if err := tx.execute(s); err != nil {
				tx.rollback()
				return at, err
			}
		}
		return tx.commit()
	}
	return distinct(x)
}

// distinct keeps only one row of each INSERT, so that no key occurs twice in a statement.
func distinct(x *write) *write {
	for _, o := range x.operations {
		if o.verb == insert || o.verb == insertOrUpdate {
			o.rows = o.rows[:1]
			if slices.Contains(o.rows[0], commitTime) { // no other statement of the transaction may read a pending commit timestamp
				x.operations = []*operation{o}
				return x
			}
		}
	}
	return x
}

func (w *world) runBatch() *write {
	x := w.operationsOf(2+w.rng.IntN(3), batchDML, true, insert, insertOrUpdate, insertOrUpdate, updateWhere)
	if x == nil {
		return nil
	}
	x.run = func() (at time.Time, err error) {
		tx, err := w.begin(readWrite())
		if err != nil {
			return at, err
		}
		req := &spannerpb.ExecuteBatchDmlRequest{Session: tx.session, Transaction: tx.selector(), Seqno: 1}
		for _, s := range w.statements(x.operations) {
			params, types := s.bind()
			req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: s.sql, Params: params, ParamTypes: types})
		}
		reply, err := w.data.ExecuteBatchDml(w.ctx, req)
		if err == nil && reply.Status.GetCode() != 0 {
			err = statusOf(reply.Status)
		}
		if err != nil {
			tx.rollback()
			return at, err
		}
		tx.saw(reply.GetPrecommitToken())
		return tx.commit()
	}
	return distinct(x)
}

func (w *world) runPartitioned() *write {
	x := w.operationsOf(1, partitionedDML, false, updateWhere, updateWhere, removeWhere)
	if x == nil || len(w.open) > 0 {
		return nil
	}
	// Partitioned DML commits a part of the rows at a time. So the statement must not be able to fail for only some of
	// its rows, as it could with a UNIQUE index. It must not cascade to child tables either.
	for _, t := range w.now().m.tables {
		if t.name == x.operations[0].table && (len(w.now().m.children(t)) > 0 || slices.ContainsFunc(t.indexes, func(x *index) bool { return x.unique })) {
			return nil
		}
	}
	x.untimed = true
	x.run = func() (at time.Time, err error) {
		tx, err := w.begin(&spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: &spannerpb.TransactionOptions_PartitionedDml{}}})
		if err == nil {
			err = tx.execute(w.statements(x.operations)[0])
		}
		return w.strong(), err
	}
	return x
}

// fill inserts so many rows into the first table that queries read the table's columnar copy without a hint.
func (w *world) fill() {
	t := w.now().m.tables[0]
	x := &write{way: mutations, features: of(mutations, manyRows), atomic: true}
	o := &operation{verb: insert, table: t.name}
	for _, c := range t.writable() {
		o.columns = append(o.columns, c.name)
	}
	for i := range int64(1100) {
		var cells []cell
		for _, name := range o.columns {
			if c := t.column(name); name == "K" {
				cells = append(cells, intCell(1000+i))
			} else {
				cells = append(cells, w.value(c))
			}
		}
		o.rows = append(o.rows, cells)
	}
	x.operations = []*operation{o}
	x.run = func() (time.Time, error) { return w.commit(w.mutations(x.operations), nil) }
	w.do(x)
}
