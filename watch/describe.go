package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// described holds a table's description, as read from INFORMATION_SCHEMA.
type described struct {
	id       TableID
	key      keyOrder
	hidden   []string        // columns that SELECT * does not return
	nullable map[string]bool // for the name of each column of the table, whether the column may be NULL
	types    map[string]string
	commits  []string  // columns with the option allow_commit_timestamp
	read     time.Time // the timestamp at which the table was described
}

type keyColumn struct {
	name string
	code spannerpb.TypeCode
	desc bool
}

// describe reads the current description of a table from the database. The case of the name does not matter, as in
// SQL.
func describe(ctx context.Context, client *spanner.Client, id TableID) (*described, error) {
	return describeAt(ctx, client, id, spanner.StrongRead())
}

func describeAt(ctx context.Context, client *spanner.Client, id TableID, at spanner.TimestampBound) (*described, error) {
	d := &described{id: id, nullable: map[string]bool{}, types: map[string]string{}}
	ro := client.ReadOnlyTransaction().WithTimestampBound(at)
	defer ro.Close()
	err := d.readColumns(ctx, ro)
	if err == nil && len(d.nullable) == 0 { // the name in id may be spelled in another letter case
		if err = d.findName(ctx, ro); err == nil {
			err = d.readColumns(ctx, ro)
		}
	}
	if err == nil {
		err = d.readKey(ctx, ro)
	}
	if err != nil {
		return nil, err
	}
	d.read, err = ro.Timestamp()
	return d, err
}

// readColumns reads the columns of the table whose name is exactly the one in d.id. The query filters each
// INFORMATION_SCHEMA view by this name, so that the database does not look at other tables, however many there are.
func (d *described) readColumns(ctx context.Context, ro *spanner.ReadOnlyTransaction) error {
	columns := spanner.Statement{Params: d.names(), SQL: `SELECT c.COLUMN_NAME, c.SPANNER_TYPE, c.IS_NULLABLE = 'YES', c.IS_HIDDEN, IFNULL(o.OPTION_VALUE, '')
FROM INFORMATION_SCHEMA.COLUMNS c
JOIN INFORMATION_SCHEMA.TABLES t ON t.TABLE_CATALOG = '' AND t.TABLE_SCHEMA = @schema AND t.TABLE_NAME = @table AND t.TABLE_TYPE = 'BASE TABLE'
LEFT JOIN INFORMATION_SCHEMA.COLUMN_OPTIONS o ON o.TABLE_CATALOG = '' AND o.TABLE_SCHEMA = @schema AND o.TABLE_NAME = @table
  AND o.COLUMN_NAME = c.COLUMN_NAME AND o.OPTION_NAME = 'allow_commit_timestamp'
WHERE c.TABLE_CATALOG = '' AND c.TABLE_SCHEMA = @schema AND c.TABLE_NAME = @table
ORDER BY c.ORDINAL_POSITION`}
	return ro.Query(ctx, columns).Do(func(row *spanner.Row) error {
		var name, typ, option string
		var nullable, hidden bool
		if err := row.Columns(&name, &typ, &nullable, &hidden, &option); err != nil {
			return err
		}
		d.nullable[name], d.types[name] = nullable, typ
		if hidden {
			d.hidden = append(d.hidden, name)
		}
		if option == "TRUE" {
			d.commits = append(d.commits, name)
		}
		return nil
	})
}

// findName replaces the name in d.id by the name with which the table was created, which may differ in case.
func (d *described) findName(ctx context.Context, ro *spanner.ReadOnlyTransaction) error {
	asked := d.id
	tables := spanner.Statement{
		Params: map[string]any{"schema": strings.ToLower(asked.Schema), "table": strings.ToLower(asked.Name)},
		SQL: `SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES
WHERE TABLE_CATALOG = '' AND LOWER(TABLE_SCHEMA) = @schema AND LOWER(TABLE_NAME) = @table AND TABLE_TYPE = 'BASE TABLE'`,
	}
	found := false
	err := ro.Query(ctx, tables).Do(func(row *spanner.Row) error {
		found = true
		return row.Columns(&d.id.Schema, &d.id.Name)
	})
	if err == nil && !found {
		err = status.Errorf(codes.NotFound, "Table not found: %s", asked)
	}
	return err
}

func (d *described) readKey(ctx context.Context, ro *spanner.ReadOnlyTransaction) error {
	key := spanner.Statement{Params: d.names(), SQL: `SELECT COLUMN_NAME, IFNULL(COLUMN_ORDERING, 'ASC') = 'DESC'
FROM INFORMATION_SCHEMA.INDEX_COLUMNS
WHERE TABLE_CATALOG = '' AND TABLE_SCHEMA = @schema AND TABLE_NAME = @table AND INDEX_TYPE = 'PRIMARY_KEY' AND ORDINAL_POSITION IS NOT NULL
ORDER BY ORDINAL_POSITION`}
	return ro.Query(ctx, key).Do(func(row *spanner.Row) error {
		var k keyColumn
		err := row.Columns(&k.name, &k.desc)
		k.code = d.code(k.name)
		d.key = append(d.key, k)
		return err
	})
}

func (d *described) names() map[string]any {
	return map[string]any{"schema": d.id.Schema, "table": d.id.Name}
}

// recheck is the interval at which the known description of a table is compared with the database while rows are read.
const recheck = 10 * time.Second

// tableCheck detects that a table was dropped between two polls and created again with another key. Without the check,
// rows would be left out, because pages would continue in the order of the old key.
type tableCheck struct {
	client *spanner.Client
	was    *described
	at     time.Time // the read timestamp of the last check of the table
	asked  time.Time // when the last check of the table was made, by this machine's clock
}

func newTableCheck(client *spanner.Client, d *described) *tableCheck {
	return &tableCheck{client, d, d.read, time.Now()}
}

// check returns an error if, at the timestamp of a read, the table's key or commit-timestamp column differs from the
// known one. The watcher then reads the feed again from its checkpoint.
func (c *tableCheck) check(ctx context.Context, at time.Time) error {
	if at.Equal(c.at) {
		return nil
	}
	d, err := describeAt(ctx, c.client, c.was.id, spanner.ReadTimestamp(at))
	if err != nil {
		return err
	}
	if !slices.Equal(d.key, c.was.key) || !slices.Equal(d.commits, c.was.commits) {
		return fmt.Errorf("table %s was made again or altered: its key was %s and is %s", c.was.id, c.was.key.text(), d.key.text())
	}
	c.at, c.asked = at, time.Now()
	return nil
}

// checkNowAndThen calls check if the last check was longer ago than the interval recheck.
func (c *tableCheck) checkNowAndThen(ctx context.Context, at time.Time) error {
	if time.Since(c.asked) < recheck {
		return nil
	}
	return c.check(ctx, at)
}

// column returns the name of a column in the table's spelling, which may differ in case from the argument.
func (d *described) column(name string) (string, error) {
	for have := range d.nullable {
		if strings.EqualFold(have, name) {
			return have, nil
		}
	}
	return "", status.Errorf(codes.NotFound, "Column not found in table %s: %s", d.id, name)
}

// code returns the type code of a column.
func (d *described) code(column string) spannerpb.TypeCode {
	typ, _, _ := strings.Cut(d.types[column], "(") // STRING(MAX) becomes STRING
	return spannerpb.TypeCode(spannerpb.TypeCode_value[typ])
}

// keyNames returns the names of the key's columns.
func (d *described) keyNames() []string {
	var names []string
	for _, k := range d.key {
		names = append(names, k.name)
	}
	return names
}

// commitTimestamp returns the commit-timestamp column to poll by: the given one, or the only column with the option
// allow_commit_timestamp.
func (d *described) commitTimestamp(given string) (string, error) {
	if given != "" {
		name, err := d.column(given)
		if typ := d.types[name]; err == nil && typ != "TIMESTAMP" {
			return "", status.Errorf(codes.FailedPrecondition, "Column %s of table %s has type %s: a commit timestamp has TIMESTAMP", name, d.id, typ)
		}
		return name, err
	}
	switch len(d.commits) {
	case 1:
		return d.commits[0], nil
	case 0:
		return "", status.Errorf(codes.FailedPrecondition, "Table %s does not contain a column with option allow_commit_timestamp=true", d.id)
	}
	return "", status.Errorf(codes.FailedPrecondition, "Table %s contains %d columns with option allow_commit_timestamp=true (%s): say which of them every write sets",
		d.id, len(d.commits), strings.Join(d.commits, ", "))
}

// list returns the tables that have a column with the option allow_commit_timestamp or, if column is not "", a column
// of this name. It also returns the tables in names, even if they do not have such a column.
func list(ctx context.Context, client *spanner.Client, column string, names []string) ([]TableID, error) {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = strings.ToLower(n)
	}
	has := `SELECT 1 FROM INFORMATION_SCHEMA.COLUMN_OPTIONS o WHERE o.TABLE_CATALOG = t.TABLE_CATALOG AND o.TABLE_SCHEMA = t.TABLE_SCHEMA AND o.TABLE_NAME = t.TABLE_NAME
  AND o.OPTION_NAME = 'allow_commit_timestamp' AND o.OPTION_VALUE = 'TRUE'`
	if column != "" {
		has = `SELECT 1 FROM INFORMATION_SCHEMA.COLUMNS c WHERE c.TABLE_CATALOG = t.TABLE_CATALOG AND c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME
  AND LOWER(c.COLUMN_NAME) = LOWER(@column)`
	}
	stmt := spanner.Statement{Params: map[string]any{"names": lower}, SQL: fmt.Sprintf(`SELECT t.TABLE_SCHEMA, t.TABLE_NAME FROM INFORMATION_SCHEMA.TABLES t
WHERE t.TABLE_CATALOG = '' AND t.TABLE_TYPE = 'BASE TABLE' AND t.TABLE_SCHEMA NOT IN ('INFORMATION_SCHEMA', 'SPANNER_SYS')
  AND (LOWER(IF(t.TABLE_SCHEMA = '', t.TABLE_NAME, CONCAT(t.TABLE_SCHEMA, '.', t.TABLE_NAME))) IN UNNEST(@names) OR EXISTS (%s))
ORDER BY t.TABLE_SCHEMA, t.TABLE_NAME`, has)}
	if column != "" {
		stmt.Params["column"] = column
	}
	var found []TableID
	err := client.Single().Query(ctx, stmt).Do(func(row *spanner.Row) error {
		id := TableID{Database: client.DatabaseName()}
		err := row.Columns(&id.Schema, &id.Name)
		found = append(found, id)
		return err
	})
	return found, err
}
