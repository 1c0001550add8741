package crossings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	views   = "views"
	definer = "SQL SECURITY DEFINER"
	roles   = "roles"
	failing = "conditions that fail"
)

func init() {
	add(feature{name: views, change: (*world).changeView, read: func(w *world, s *state) *reading { return w.viewReading(s.m, "") }})
	add(feature{name: definer})
	add(feature{name: roles, change: (*world).changeRole, read: (*world).roleReading})
	add(feature{name: failing})
}

// changeView creates, replaces or drops a view.
func (w *world) changeView() *change {
	m := w.now().m
	var old *view
	if len(m.views) > 0 && w.rng.IntN(3) > 0 {
		old = &m.views[w.rng.IntN(len(m.views))]
	}
	if old != nil && w.rng.IntN(3) == 0 && !m.granted(old.name) {
		name := old.name
		return &change{statements: []string{"DROP VIEW " + name}, features: of(views), apply: func(m *model) {
			m.views = slices.DeleteFunc(slices.Clone(m.views), func(v view) bool { return v.name == name })
		}}
	}
	if old == nil && len(m.views) >= 4 {
		return nil
	}
	t := pick(w.rng, m.tables)
	v := view{name: w.newName("View"), table: t.name, definer: w.rng.IntN(2) == 0, features: of(views)}
	if v.definer {
		v.features = v.features.and(definer)
	}
	create := "CREATE VIEW "
	if old != nil {
		v.name, create = old.name, "CREATE OR REPLACE VIEW "
	}
	for _, c := range t.columns {
		if w.rng.IntN(3) > 0 {
			v.columns = append(v.columns, c.name)
		}
	}
	if len(v.columns) == 0 {
		return nil
	}
	security := map[bool]string{true: "DEFINER", false: "INVOKER"}[v.definer]
	text := fmt.Sprintf("%s%s SQL SECURITY %s AS SELECT t.%s FROM %s AS t", create, v.name, security, strings.Join(v.columns, ", t."), t.name)
	if names := t.columnsOf(intKind); len(names) > 0 && w.rng.IntN(3) > 0 {
		v.except = &predicate{column: pick(w.rng, names), operator: "!=", value: intCell(w.rng.Int64N(4))}
		v.except.literal = v.except.value.text
		text += " WHERE t." + v.except.String()
		if !slices.Contains(v.columns, v.except.column) {
			text = strings.Replace(text, "SELECT t.", "SELECT t."+v.except.column+", t.", 1)
			v.columns = append([]string{v.except.column}, v.columns...)
		}
	}
	return &change{statements: []string{text}, features: of(views), apply: func(m *model) {
		m.views = append(slices.DeleteFunc(slices.Clone(m.views), func(o view) bool { return o.name == v.name }), v)
	}}
}

// viewReading returns a reading of a view as a role. Sometimes it adds a condition to the query. For rows that the view
// leaves out, this condition gives an error. So the reading fails if the server evaluates the condition for such a row.
func (w *world) viewReading(m *model, role string) *reading {
	if len(m.views) == 0 {
		return nil
	}
	v := pick(w.rng, m.views)
	t := m.table(v.table)
	g := &target{t: t, name: t.name, where: v.except}
	for _, name := range v.columns {
		if w.rng.IntN(2) == 0 {
			g.columns = append(g.columns, name)
		}
	}
	if len(g.columns) == 0 {
		g.columns = v.columns
	}
	text, features := "SELECT v."+strings.Join(g.columns, ", v.")+" FROM "+v.name+" AS v", v.features.and(sql)
	if v.except != nil && v.definer && role != "" && w.rng.IntN(3) > 0 {
		x, c := "v."+v.except.column, v.except.value.text
		text += " WHERE " + pick(w.rng, []string{
			fmt.Sprintf("DIV(100, MOD(%s, 1000) - %s) < 1000", x, c),
			fmt.Sprintf("IF(%s = %s, ERROR('a hidden row'), TRUE)", x, c),
			fmt.Sprintf("%s / (MOD(%s, 1000) - %s) != 0.33", x, x, c),
		})
		features = features.and(failing)
	}
	if role != "" {
		features = features.and(roles)
	}
	involved := w.targetFeatures(g)
	return &reading{
		what: fmt.Sprintf("role %q: %s", role, text), want: g.want, involves: func(m *model) set { return involved(m).with(features) },
		get: func(at time.Time) ([][]cell, error) {
			rows, err := w.sql(text, role, at, nil)
			return w.allowed(rows, err, g, role, m.may(role, v))
		},
	}
}

// may reports whether a role may read a view.
func (m *model) may(role string, v view) bool {
	return role == "" || m.roles[role][v.name] && (v.definer || m.roles[role][v.table])
}

// allowed checks how the server has answered a request of a role. If the parameter may is true, the server must have
// returned rows, and otherwise the error PERMISSION_DENIED. If this error was right, allowed returns the rows of the
// model, so that the comparison with the model succeeds.
func (w *world) allowed(rows [][]cell, err error, g *target, role string, may bool) ([][]cell, error) {
	denied := status.Code(err) == codes.PermissionDenied
	if denied == may {
		return rows, fmt.Errorf("role %s, which may read it %t: %w", role, may, errorOr(err))
	}
	if !denied {
		return rows, err
	}
	w.counts["denied"]++
	m := w.now().m
	for _, r := range g.rows(m) {
		cells := make([]cell, len(g.columns))
		for i, name := range g.columns {
			cells[i] = m.value(m.table(g.t.name), r, name)
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

func errorOr(err error) error {
	if err == nil {
		return fmt.Errorf("it is not denied")
	}
	return err
}

// changeRole returns a change that creates a role, or grants or revokes a privilege.
func (w *world) changeRole() *change {
	m := w.now().m
	name := pick(w.rng, []string{"reader", "writer"})
	if m.roles[name] == nil {
		return &change{statements: []string{"CREATE ROLE " + name}, features: of(roles), apply: func(m *model) { m.roles[name] = map[string]bool{} }}
	}
	object, of1 := "TABLE ", pick(w.rng, m.tables).name
	if len(m.views) > 0 && w.rng.IntN(3) > 0 {
		object, of1 = "VIEW ", pick(w.rng, m.views).name
	}
	verb, preposition, gives := "GRANT", "TO", !m.roles[name][of1]
	if !gives {
		verb, preposition = "REVOKE", "FROM"
	}
	return &change{statements: []string{fmt.Sprintf("%s SELECT ON %s%s %s ROLE %s", verb, object, of1, preposition, name)}, features: of(roles), apply: func(m *model) {
		m.roles[name] = maps.Clone(m.roles[name])
		delete(m.roles[name], of1)
		if gives {
			m.roles[name][of1] = true
		}
	}}
}

// roleReading returns a query that a session with a random role sends to a view or a table, with the expected answer.
// It returns nil if there are no roles, or if s is not the newest state: the newest roles decide about reads of the
// past, too.
func (w *world) roleReading(s *state) *reading {
	if len(s.m.roles) == 0 || s != w.now() {
		return nil
	}
	role := pick(w.rng, sortedKeys(s.m.roles))
	if r := w.viewReading(s.m, role); r != nil && w.rng.IntN(3) > 0 {
		return r
	}
	g := w.target(s.m)
	if schemaOf(g.t.name) != "" { // TestRoleModel covers USAGE of schemas
		return nil
	}
	g.name = g.t.name
	text, involved := g.sql(hint(w.rng)), w.targetFeatures(g)
	return &reading{
		what: fmt.Sprintf("role %q: %s", role, text), want: g.want, involves: func(m *model) set { return involved(m).and(roles, sql) },
		get: func(at time.Time) ([][]cell, error) {
			rows, err := w.sql(text, role, at, nil)
			return w.allowed(rows, err, g, role, s.m.roles[role][g.t.name])
		},
	}
}
