package server

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// modelSchema is the schema on which TestRoleModel grants privileges. All tables have the columns K (the key), A and B.
var modelSchema = []string{
	"CREATE SEQUENCE S BIT_REVERSED_POSITIVE",
	"CREATE SCHEMA n",
	"CREATE TABLE T (K INT64, A STRING(MAX), B STRING(MAX)) PRIMARY KEY (K)",
	"CREATE TABLE U (K INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE S)), A STRING(MAX), B STRING(MAX)) PRIMARY KEY (K)",
	"CREATE TABLE n.T (K INT64, A STRING(MAX), B STRING(MAX)) PRIMARY KEY (K)",
	"CREATE INDEX ByA ON T(A) STORING (B)",
	"CREATE VIEW Invoked SQL SECURITY INVOKER AS SELECT T.K, T.A FROM T",
	"CREATE VIEW Defined SQL SECURITY DEFINER AS SELECT T.K, T.A FROM T",
	"CREATE CHANGE STREAM C FOR T",
}

var (
	modelTables  = []string{"T", "U", "n.T"}
	modelColumns = []string{"K", "A", "B"}
	modelRoles   = []string{"a", "b", "c", "d"}
	// modelOthers maps the objects other than tables, with their kinds as in GRANT, to the privileges that they can
	// have.
	modelOthers = map[string][]string{
		"VIEW Invoked": {"SELECT"}, "VIEW Defined": {"SELECT"}, "CHANGE STREAM C": {"SELECT"}, "TABLE FUNCTION READ_C": {"EXECUTE"},
		"SEQUENCE S": {"SELECT", "UPDATE"}, "SCHEMA n": {"USAGE"}, "SCHEMA DEFAULT": {"USAGE"},
	}
)

// A need is a privilege on a column of an object. The column is "" for a privilege on the whole object, and "?" if a
// privilege on any one column suffices.
type need struct{ privilege, object, column string }

// A roleModel stores the privileges that were granted to roles, and computes from them what each role may do. It does
// not use the server's code for this.
type roleModel struct {
	*harness
	*rand.Rand
	sessions map[string]string
	exists   map[string]bool
	granted  map[string]map[need]bool   // by role
	members  map[string]map[string]bool // for each member, the roles of which it is a member

	allowed, denied int // numbers of requests that the model allows, and that it denies
}

// TestRoleModel creates roles, grants and revokes privileges at random, and sends random requests in sessions of the
// roles. A request must get PERMISSION_DENIED if the model does not allow it, and only then.
func TestRoleModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &roleModel{
				harness: newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, modelSchema), Rand: rand.New(rand.NewPCG(seed, 1)),
				sessions: map[string]string{}, exists: map[string]bool{"public": true}, granted: map[string]map[need]bool{}, members: map[string]map[string]bool{},
			}
			for _, role := range append(modelRoles, "public") {
				m.granted[role], m.members[role] = map[need]bool{}, map[string]bool{}
			}
			m.granted["public"][need{"USAGE", "SCHEMA DEFAULT", ""}] = true
			for range 100 {
				m.change()
				for range 16 {
					m.request()
				}
				m.checkTables()
			}
			m.checkRoundTrip()
			if t.Logf("%d requests allowed, %d denied", m.allowed, m.denied); m.allowed < 100 || m.denied < 100 {
				t.Error("that is too few to tell")
			}
		})
	}
}

// pick returns a random element of a list.
func pick[T any](m *roleModel, list []T) T { return list[m.IntN(len(list))] }

// some returns a random choice of elements of a list, at least one.
func some[T any](m *roleModel, list []T) (picked []T) {
	for picked == nil {
		for _, x := range list {
			if m.IntN(2) == 0 {
				picked = append(picked, x)
			}
		}
	}
	return picked
}

// change runs a random DDL statement about roles, and checks that it succeeds or fails as the model says.
func (m *roleModel) change() {
	role := pick(m, append(modelRoles, "public"))
	verb, preposition := "GRANT", "TO"
	grant := m.IntN(3) > 0
	if !grant {
		verb, preposition = "REVOKE", "FROM"
	}
	target := " " + preposition + " ROLE " + role
	switch n := m.IntN(20); {
	case role != "public" && (!m.exists[role] || n == 0):
		m.makeOrDrop(role)
	case n < 4:
		of := pick(m, modelRoles)
		m.run(verb+" ROLE "+of+target, m.exists[of] && (!grant || role != "public" && !m.enabled(of)[role]), func() {
			delete(m.members[role], of)
			if grant {
				m.members[role][of] = true
			}
		})
	case n < 14:
		m.changeTable(verb, target, role, grant)
	default:
		object := pick(m, slices.Sorted(maps.Keys(modelOthers)))
		privilege := pick(m, modelOthers[object])
		m.run(verb+" "+privilege+" ON "+object+target, true, func() { m.set(role, need{privilege, object, ""}, grant) })
	}
}

func (m *roleModel) makeOrDrop(role string) {
	if !m.exists[role] {
		m.run("CREATE ROLE "+role, true, func() { m.exists[role] = true })
		return
	}
	m.run("DROP ROLE "+role, len(m.granted[role]) == 0, func() {
		m.exists[role] = false
		m.members[role] = map[string]bool{}
		for _, of := range m.members {
			delete(of, role)
		}
	})
}

// changeTable grants or revokes a privilege on a table, or on columns of it.
func (m *roleModel) changeTable(verb, target, role string, grant bool) {
	table := pick(m, modelTables)
	privilege := pick(m, []string{"SELECT", "SELECT", "INSERT", "UPDATE", "DELETE"})
	whole := need{privilege, table, ""}
	if privilege == "DELETE" || m.IntN(2) == 0 {
		m.run(verb+" "+privilege+" ON TABLE "+table+target, true, func() {
			m.set(role, whole, grant)
			for _, c := range modelColumns {
				m.set(role, need{privilege, table, c}, false)
			}
		})
		return
	}
	columns := some(m, modelColumns)
	m.run(verb+" "+privilege+"("+strings.Join(columns, ", ")+") ON TABLE "+table+target, true, func() {
		for _, c := range columns {
			if !m.granted[role][whole] {
				m.set(role, need{privilege, table, c}, grant)
			}
		}
	})
}

func (m *roleModel) set(role string, n need, has bool) {
	delete(m.granted[role], n)
	if has {
		m.granted[role][n] = true
	}
}

// run runs a DDL statement. The parameter succeeds is the expected result: true for success, false for an error. After
// the expected success, run calls the function follow, which updates the model.
func (m *roleModel) run(sql string, succeeds bool, follow func()) {
	m.Helper()
	if err := m.database().UpdateSchema(m.ctx, []string{sql}, nil); (err == nil) != succeeds {
		m.Fatalf("%s: %v", sql, err)
	}
	if succeeds {
		follow()
	}
}

// enabled returns the roles whose privileges a role has: its own, public, and those of which it is a member.
func (m *roleModel) enabled(role string) map[string]bool {
	all := map[string]bool{role: true, "public": true}
	for before := 0; before != len(all); {
		before = len(all)
		for member := range maps.Clone(all) {
			maps.Copy(all, m.members[member])
		}
	}
	return all
}

// allows reports whether a role has all needed privileges.
func (m *roleModel) allows(role string, needs []need) bool {
	if !m.exists[role] {
		return false
	}
	for _, n := range needs {
		if !m.has(role, n) || !m.has(role, need{"USAGE", schemaOf(n.object), ""}) {
			return false
		}
	}
	return true
}

func schemaOf(object string) string {
	if strings.HasPrefix(object, "n.") {
		return "SCHEMA n"
	}
	return "SCHEMA DEFAULT"
}

func (m *roleModel) has(role string, n need) bool {
	for r := range m.enabled(role) {
		if m.granted[r][n] || m.granted[r][need{n.privilege, n.object, ""}] {
			return true
		}
		for _, c := range modelColumns {
			if n.column == "?" && m.granted[r][need{n.privilege, n.object, c}] {
				return true
			}
		}
	}
	return false
}

func columnNeeds(privilege, object string, columns ...string) (list []need) {
	for _, c := range columns {
		list = append(list, need{privilege, object, c})
	}
	return list
}

// request sends a random request in a session with a random role, and checks its outcome with the model.
func (m *roleModel) request() {
	role := pick(m, append(modelRoles, "public"))
	if m.sessions[role] == "" {
		name, err := m.roleSession(role)
		if (err == nil) != m.exists[role] {
			m.Fatalf("a session of role %s: %v", role, err)
		}
		if err != nil {
			return
		}
		m.sessions[role] = name // a session stays valid when its role is dropped
	}
	what, needs, err := pick(m, []func(ses string) (string, []need, error){m.query, m.query, m.read, m.read, m.dml, m.dml, m.mutate, m.other})(m.sessions[role])
	allowed := m.allows(role, needs)
	if allowed {
		m.allowed++
	} else {
		m.denied++
	}
	if denied := status.Code(err) == codes.PermissionDenied; denied == allowed {
		m.Fatalf("role %s, which has %v of %v and is a member of %v: %s needs %v: %v", role, m.granted[role], m.granted, m.members, what, needs, err)
	}
}

// query runs a random SELECT on a table, with conditions, joins or subqueries. It returns the SQL, the privileges that
// the query needs, and its error.
func (m *roleModel) query(ses string) (string, []need, error) {
	table, other := pick(m, modelTables), pick(m, modelTables)
	columns, where, column := some(m, modelColumns), pick(m, modelColumns), pick(m, modelColumns)
	sql := "SELECT x." + strings.Join(columns, ", x.") + " FROM " + table + " AS x"
	needs := columnNeeds("SELECT", table, columns...)
	switch m.IntN(5) {
	case 0:
		sql += " WHERE x." + where + " IS NOT NULL"
		needs = append(needs, need{"SELECT", table, where})
	case 1:
		sql += " WHERE EXISTS (SELECT 1 FROM " + other + " AS y WHERE y." + column + " IS NULL)"
		needs = append(needs, need{"SELECT", other, column})
	case 2:
		sql += " CROSS JOIN " + other + " AS y ORDER BY y." + column + ", x." + where + " LIMIT 1"
		needs = append(needs, need{"SELECT", other, column}, need{"SELECT", table, where})
	case 3:
		sql, needs = "SELECT COUNT(*) FROM "+table, []need{{"SELECT", table, "?"}}
	}
	_, err := m.sql(ses, nil, 0, sql)
	return sql, needs, err
}

// read reads random columns of all rows or of one, from a table or its index. It returns a description, the privileges
// that the read needs, and its error.
func (m *roleModel) read(ses string) (string, []need, error) {
	req := &spannerpb.ReadRequest{Session: ses, Table: pick(m, modelTables), Columns: some(m, modelColumns), KeySet: allKeys()}
	needs := columnNeeds("SELECT", req.Table, req.Columns...)
	key, value := "K", "1"
	if req.Table == "T" && m.IntN(2) == 0 {
		req.Index, key, value = "ByA", "A", "x"
	}
	if m.IntN(2) == 0 {
		req.KeySet = &spannerpb.KeySet{Keys: []*structpb.ListValue{list(value)}}
		needs = append(needs, need{"SELECT", req.Table, key})
	}
	_, err := m.data.Read(m.ctx, req)
	return req.String(), needs, err
}

// defaultNeeds returns the privileges that an insert into the given columns of a table needs additionally if a sequence
// generates the key.
func defaultNeeds(table string, columns []string) []need {
	if table != "U" || slices.Contains(columns, "K") {
		return nil
	}
	return []need{{"INSERT", "U", "K"}, {"UPDATE", "SEQUENCE S", ""}}
}

var modelValues = map[string]string{"K": "1", "A": "'x'", "B": "NULL"}

func literalsOf(columns []string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = modelValues[c]
	}
	return strings.Join(values, ", ")
}

// dml runs a random DML statement in a transaction that is not committed. It returns the SQL, the privileges that the
// statement needs, and its error.
func (m *roleModel) dml(ses string) (string, []need, error) {
	table, columns := pick(m, modelTables), some(m, modelColumns)
	names := strings.Join(columns, ", ")
	var sql string
	var needs []need
	switch m.IntN(4) {
	case 0:
		sql = "INSERT INTO " + table + " (" + names + ") VALUES (" + literalsOf(columns) + ")"
		needs = append(columnNeeds("INSERT", table, columns...), defaultNeeds(table, columns)...)
	case 1:
		sql = "INSERT OR UPDATE INTO " + table + " (" + names + ") VALUES (" + literalsOf(columns) + ")"
		needs = slices.Concat(columnNeeds("INSERT", table, columns...), columnNeeds("UPDATE", table, columns...), defaultNeeds(table, columns))
	case 2:
		set, from, where := pick(m, []string{"A", "B"}), pick(m, []string{"A", "B"}), pick(m, modelColumns)
		sql = "UPDATE " + table + " SET " + set + " = " + from + " WHERE " + where + " IS NULL"
		needs = append(columnNeeds("SELECT", table, from, where), need{"UPDATE", table, set})
	case 3:
		where := pick(m, modelColumns)
		sql, needs = "DELETE FROM "+table+" WHERE "+where+" IS NULL", []need{{"DELETE", table, ""}, {"SELECT", table, where}}
	}
	if m.IntN(3) == 0 {
		back := pick(m, modelColumns)
		sql += " THEN RETURN " + back
		needs = append(needs, need{"SELECT", table, back})
	}
	id := m.begin(ses, readWrite())
	_, err := m.sql(ses, byID(id), 1, sql)
	_, rollback := m.data.Rollback(m.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
	m.ok(rollback)
	return sql, needs, err
}

// mutate commits a random mutation. It returns a description, the privileges that the mutation needs, and its error.
func (m *roleModel) mutate(ses string) (string, []need, error) {
	columns := some(m, modelColumns)
	row := new(structpb.ListValue)
	for _, c := range columns {
		row.Values = append(row.Values, structpb.NewStringValue(strings.Trim(strings.Replace(modelValues[c], "NULL", "y", 1), "'")))
	}
	w := &spannerpb.Mutation_Write{Table: pick(m, modelTables), Columns: columns, Values: []*structpb.ListValue{row}}
	insert, update, remove := columnNeeds("INSERT", w.Table, columns...), columnNeeds("UPDATE", w.Table, columns...), need{"DELETE", w.Table, ""}
	insert = append(insert, defaultNeeds(w.Table, columns)...)
	mutation, needs := new(spannerpb.Mutation), insert
	switch m.IntN(5) {
	case 0:
		mutation.Operation = &spannerpb.Mutation_Insert{Insert: w}
	case 1:
		mutation.Operation, needs = &spannerpb.Mutation_Update{Update: w}, update
	case 2:
		mutation.Operation, needs = &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: w}, append(insert, update...)
	case 3:
		mutation.Operation, needs = &spannerpb.Mutation_Replace{Replace: w}, append(insert, remove)
	case 4:
		mutation.Operation, needs = &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: w.Table, KeySet: allKeys()}}, []need{remove}
	}
	_, err := m.data.Commit(m.ctx, singleUse(ses, mutation))
	return mutation.String(), needs, err
}

// other reads a view, the change stream or the sequence. A query of the change stream fails because ExecuteSql cannot
// run it, but only after privileges were checked.
func (m *roleModel) other(ses string) (string, []need, error) {
	queries := map[string][]need{
		"SELECT A FROM Defined":                          {{"SELECT", "VIEW Defined", ""}},
		"SELECT COUNT(*) FROM Defined":                   {{"SELECT", "VIEW Defined", ""}},
		"SELECT A FROM Invoked":                          {{"SELECT", "VIEW Invoked", ""}, {"SELECT", "T", "K"}, {"SELECT", "T", "A"}},
		"SELECT ChangeRecord FROM READ_C(NULL)":          {{"SELECT", "CHANGE STREAM C", ""}, {"EXECUTE", "TABLE FUNCTION READ_C", ""}},
		"SELECT GET_INTERNAL_SEQUENCE_STATE(SEQUENCE S)": {{"SELECT", "SEQUENCE S", ""}},
		"SELECT 1": nil,
	}
	sql := pick(m, slices.Sorted(maps.Keys(queries)))
	_, err := m.sql(ses, nil, 0, sql)
	return sql, queries[sql], err
}

// checkTables checks that a role sees exactly those tables and views in INFORMATION_SCHEMA on which it has privileges.
func (m *roleModel) checkTables() {
	role := pick(m, append(modelRoles, "public"))
	if !m.exists[role] || m.sessions[role] == "" {
		return
	}
	rs, err := m.sql(m.sessions[role], nil, 0, "SELECT IF(TABLE_SCHEMA = '', '', 'n.') || TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA IN ('', 'n')")
	m.ok(err)
	want := map[string]bool{}
	for r := range m.enabled(role) {
		for n := range m.granted[r] {
			if name := strings.TrimPrefix(n.object, "VIEW "); slices.Contains(modelTables, name) || name != n.object {
				want[name] = true
			}
		}
	}
	got := strings.Fields(textOfRows(rs))
	slices.Sort(got)
	if list := slices.Sorted(maps.Keys(want)); !slices.Equal(got, list) {
		m.Fatalf("role %s sees %v, not %v", role, got, list)
	}
}

// checkRoundTrip creates a second database from the DDL that GetDatabaseDdl returns, and checks that the DDL of the
// second database is the same.
func (m *roleModel) checkRoundTrip() {
	printed := m.database().DDL()
	again, err := m.server.registry.CreateDatabase(m.ctx, testDatabase+"2", printed)
	m.ok(err)
	if !slices.Equal(again.DDL(), printed) {
		m.Fatalf("%s\n\nand again\n\n%s", strings.Join(printed, ";\n"), strings.Join(again.DDL(), ";\n"))
	}
}
