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

// pageQuery is the text of the polls of a table: rows behind a position, in the order of commit timestamp and key.
//
//	SELECT * FROM `Singers`@{FORCE_INDEX=…} WHERE `Shard` IN UNNEST(@shards) AND `Updated` > @after ORDER BY `Updated`, `Id` LIMIT @limit
//
// A page that begins behind a key has `Updated` IS NOT NULL AND (`Updated` > @after OR `Updated` = @after AND `Id` > @key0) instead: two ranges of the
// index in each shard. (That it is not NULL follows, but is said for indexes that are NULL_FILTERED.) So a page costs its rows, however far behind the watcher is, and needs no statement with a WITH clause for each shard, to which
// the Java library falls back.
type pageQuery struct {
	head   string // SELECT ... WHERE
	commit string // the commit-timestamp column, quoted
	key    []keyColumn
	tail   string // ORDER BY ... LIMIT
	shards ShardProvider
	limit  int
}

func newPageQuery(d *described, commit, columns string, o TableOptions) *pageQuery {
	q := &pageQuery{commit: quote(commit), shards: o.Shards, limit: o.Limit}
	order := []string{q.commit}
	for _, k := range d.key {
		if k.name == commit {
			continue // equal among rows of one timestamp
		}
		q.key = append(q.key, k)
		order = append(order, ordered(k))
	}
	q.head = "SELECT " + columns + " FROM " + d.id.quoted() + o.Hint + " WHERE "
	q.tail = " ORDER BY " + strings.Join(order, ", ") + " LIMIT @limit"
	return q
}

func ordered(k keyColumn) string {
	if k.desc {
		return quote(k.name) + " DESC"
	}
	return quote(k.name)
}

// quoted is the name in a statement.
func (t TableID) quoted() string {
	if t.Schema == "" {
		return quote(t.Name)
	}
	return quote(t.Schema) + "." + quote(t.Name)
}

// selectList has the columns that are asked for, with the key and one more. All columns are *, so that one that is added to the table comes with the
// next poll.
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

// position is up to where a table has been read.
type position struct {
	Timestamp time.Time `json:"timestamp"`
	// Key is that of the last row of Timestamp that was read, without the commit timestamp if that is a part of it; nil if all were.
	Key []*structpb.Value `json:"key,omitempty"`
}

// newPosition is a checkpoint's.
func newPosition(c Checkpoint, keyLen int) (position, error) {
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
	if len(p.Key) != keyLen {
		return position{Timestamp: c.Timestamp}, nil // the table was made again with another key
	}
	return p, nil
}

func (p position) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // values from Spanner are numbers, strings, booleans and NULL
	}
	return string(text)
}

// statement asks for the page behind a position.
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
		behind = q.behind(p.Key, params)
	}
	if behind == "" {
		where.WriteString(q.commit + " > @after")
	} else {
		fmt.Fprintf(&where, "%[1]s IS NOT NULL AND (%[1]s > @after OR %[1]s = @after AND %[2]s)", q.commit, behind)
	}
	return spanner.Statement{SQL: q.head + where.String() + q.tail, Params: params}
}

// behind is the condition that a row comes behind a key; "" if none can.
//
//	(k0 > @key0 OR k0 = @key0 AND (k1 < @key1 OR k1 IS NULL))
//
// NULL is the least value and NaN comes next, in an order that descends they are the last.
func (q *pageQuery) behind(key []*structpb.Value, params map[string]any) string {
	condition := ""
	for i := len(key) - 1; i >= 0; i-- {
		column, name := quote(q.key[i].name), fmt.Sprintf("key%d", i)
		code := q.key[i].code
		float := code == spannerpb.TypeCode_FLOAT64 || code == spannerpb.TypeCode_FLOAT32
		after, same := "", ""
		switch {
		case isNull(key[i]):
			same = column + " IS NULL"
			if !q.key[i].desc {
				after = column + " IS NOT NULL"
			}
		case float && isNaN(key[i]):
			same = "IS_NAN(" + column + ")"
			after = column + " IS NOT NULL AND NOT " + same
			if q.key[i].desc {
				after = column + " IS NULL"
			}
		default:
			params[name] = spanner.GenericColumnValue{Type: &spannerpb.Type{Code: code}, Value: key[i]}
			same = column + " = @" + name
			after = column + " > @" + name
			if q.key[i].desc {
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
