package watch

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// pageQuery holds the SQL that polls a table. The query returns the rows after a position, ordered by commit timestamp
// and key:
//
//	SELECT * FROM `Singers`@{FORCE_INDEX=…} WHERE `Shard` IN UNNEST(@shards) AND `Updated` > @after ORDER BY `Updated`, `Id` LIMIT @limit
//
// If the page begins after a key, the query has another condition in place of `Updated` > @after:
//
//	`Updated` IS NOT NULL AND (`Updated` > @after OR `Updated` = @after AND `Id` > @key0)
//
// The database reads this as two ranges of the index in each shard. (IS NOT NULL is redundant, but NULL_FILTERED
// indexes need it.) So the cost of a page depends only on its own rows, however far the watcher is behind.
type pageQuery struct {
	head   string // the first part of the query: SELECT ... WHERE
	commit string // the commit-timestamp column, quoted
	key    keyOrder
	tail   string // the last part of the query: ORDER BY ... LIMIT @limit
	shards ShardProvider
	limit  int
}

func newPageQuery(d *described, commit, columns string, o TableOptions) *pageQuery {
	q := &pageQuery{commit: quote(commit), shards: o.Shards, limit: o.Limit}
	for _, k := range d.key {
		if k.name != commit { // rows with the same commit timestamp are ordered by the other columns of the key
			q.key = append(q.key, k)
		}
	}
	order := append(keyOrder{{name: commit}}, q.key...)
	q.head = "SELECT " + columns + " FROM " + d.id.quoted() + o.Hint + " WHERE "
	q.tail = " ORDER BY " + order.orderBy() + " LIMIT @limit"
	return q
}

// quoted returns the table's name for SQL, quoted.
func (t TableID) quoted() string {
	if t.Schema == "" {
		return quote(t.Name)
	}
	return quote(t.Schema) + "." + quote(t.Name)
}

// selectList returns a SELECT list with the columns that asked names, the key columns, and the one column that the
// parameter more names. If asked is empty, the list contains *, so that the next poll also returns columns that are
// added to the table later.
func (d *described) selectList(asked []string, more string) (string, error) {
	need := append(d.keyNames(), more)
	if len(asked) == 0 {
		text := "*"
		for _, name := range need {
			if slices.Contains(d.hidden, name) {
				text += ", " + quote(name)
			}
		}
		return text, nil
	}
	var names []string
	for _, name := range append(slices.Clone(asked), need...) {
		name, err := d.column(name)
		if err != nil {
			return "", err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range names {
		names[i] = quote(names[i])
	}
	return strings.Join(names, ", "), nil
}

// position says up to which row a table has been read.
type position struct {
	Timestamp time.Time `json:"timestamp"`
	// Key is the key of the last row with Timestamp that was read, without the commit timestamp if that is part of the
	// key. Key is nil if all rows with Timestamp were read.
	Key []*structpb.Value `json:"key,omitempty"`
	// Columns names the columns of Key, in the format of keyOrder.text.
	Columns string `json:"columns,omitempty"`
}

// newPosition returns the position of a checkpoint. If the checkpoint has a key with other columns than the parameter
// key, the table was dropped and created again. Then newPosition returns only the timestamp of the checkpoint. All rows
// of the new table have later commit timestamps, so none is left out.
func newPosition(c Checkpoint, key keyOrder) (position, error) {
	p := position{Timestamp: c.Timestamp}
	if c.Position == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(c.Position), &p); err != nil {
		return p, status.Errorf(codes.FailedPrecondition, "The checkpoint's position is not a table's: %q", c.Position)
	}
	for i, v := range p.Key {
		if v == nil { // JSON's null
			p.Key[i] = structpb.NewNullValue()
		}
	}
	if p.Key != nil && p.Columns != key.text() {
		return position{Timestamp: c.Timestamp}, nil
	}
	return p, nil
}

func (p position) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // marshalling cannot fail: values from Spanner are numbers, strings, booleans and NULL
	}
	return string(text)
}

// statement returns the query for the page after a position.
func (q *pageQuery) statement(p position, now time.Time) spanner.Statement {
	params := map[string]any{"after": p.Timestamp, "limit": int64(q.limit)}
	var where strings.Builder
	if q.shards != nil {
		condition, more := q.shards.Filter(p.Timestamp, now)
		where.WriteString(condition + " AND ")
		maps.Copy(params, more)
	}
	behind := ""
	if p.Key != nil {
		behind = q.key.behind(p.Key, params)
	}
	if behind == "" {
		where.WriteString(q.commit + " > @after")
	} else {
		fmt.Fprintf(&where, "%[1]s IS NOT NULL AND (%[1]s > @after OR %[1]s = @after AND %[2]s)", q.commit, behind)
	}
	return spanner.Statement{SQL: q.head + where.String() + q.tail, Params: params}
}

// keyOrder is a list of columns by which rows are ordered.
type keyOrder []keyColumn

// text returns the columns with their types as text: Id INT64, Name STRING DESC.
func (k keyOrder) text() string {
	var list []string
	for _, c := range k {
		text := c.name + " " + c.code.String()
		if c.desc {
			text += " DESC"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// orderBy returns the list that follows ORDER BY.
func (k keyOrder) orderBy() string {
	var list []string
	for _, c := range k {
		text := quote(c.name)
		if c.desc {
			text += " DESC"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// behind returns an SQL condition that is true for the rows that come after a key. It adds the key's values to params.
// It returns "" if no row can come after the key. For example:
//
//	(k0 > @key0 OR k0 = @key0 AND (k1 < @key1 OR k1 IS NULL))
//
// NULL is the least value, and NaN is the next one. In descending order, these two come last.
func (k keyOrder) behind(key []*structpb.Value, params map[string]any) string {
	condition := ""
	for i := len(key) - 1; i >= 0; i-- {
		column, name := quote(k[i].name), fmt.Sprintf("key%d", i)
		code := k[i].code
		float := code == spannerpb.TypeCode_FLOAT64 || code == spannerpb.TypeCode_FLOAT32
		after, same := "", ""
		switch {
		case isNull(key[i]):
			same = column + " IS NULL"
			if !k[i].desc {
				after = column + " IS NOT NULL"
			}
		case float && isNaN(key[i]):
			same = "IS_NAN(" + column + ")"
			after = column + " IS NOT NULL AND NOT " + same
			if k[i].desc {
				after = column + " IS NULL"
			}
		default:
			params[name] = spanner.GenericColumnValue{Type: &spannerpb.Type{Code: code}, Value: key[i]}
			same = column + " = @" + name
			after = column + " > @" + name
			if k[i].desc {
				after = column + " < @" + name + " OR " + column + " IS NULL"
				if float {
					after += " OR IS_NAN(" + column + ")"
				}
			}
		}
		if condition != "" {
			same += " AND " + condition
		} else {
			same = ""
		}
		condition = either(after, same)
	}
	return condition
}

func either(a, b string) string {
	switch {
	case a == "" && b == "":
		return ""
	case a == "":
		return "(" + b + ")"
	case b == "":
		return "(" + a + ")"
	}
	return "(" + a + " OR " + b + ")"
}

func isNull(v *structpb.Value) bool {
	_, ok := v.GetKind().(*structpb.Value_NullValue)
	return ok
}

func isNaN(v *structpb.Value) bool {
	return v.GetStringValue() == "NaN" || math.IsNaN(v.GetNumberValue())
}
