package watch

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// A ShardProvider selects rows of a table by a shard column. A shard column spreads the load of writes: if an index
// begins with a commit timestamp, all new entries go to the end of the index, where one server must take them all. With
// a shard column before the commit timestamp, new entries go to many places of the index
// (https://cloud.google.com/spanner/docs/schema-design#creating-indexes).
type ShardProvider interface {
	// ID identifies the shard in a repository, where each shard of a table has a checkpoint of its own.
	ID() ShardID
	// Filter returns a WHERE condition and the values of its query parameters. The condition must hold for every row of
	// the shard whose commit timestamp is later than the first argument and not later than the second argument. The
	// second argument of a poll is an estimate of the current time, so the condition must also hold for rows with
	// slightly later commit timestamps.
	Filter(after, now time.Time) (condition string, params map[string]any)
}

// FixedShard selects the rows whose shard column has the given value or, for a slice, one of its values. The value is
// a bool, []byte, civil.Date, float64, int64, int, big.Rat, string or time.Time, or a slice of one of these. Watchers
// with different values share the work on a table.
func FixedShard(column string, value any) (ShardProvider, error) {
	if v, ok := value.(int); ok {
		value = int64(v)
	}
	if v, ok := value.([]int); ok {
		list := make([]int64, len(v))
		for i := range v {
			list[i] = int64(v[i])
		}
		value = list
	}
	if text, ok := shardList(value); ok {
		return fixedShard{quote(column) + " IN UNNEST(@shards)", value, ShardID{spannerpb.TypeCode_STRING, text}}, nil
	}
	if text, code, ok := shardText(value); ok {
		return fixedShard{quote(column) + " = @shards", value, ShardID{code, text}}, nil
	}
	return nil, fmt.Errorf("watch.FixedShard: a shard of type %T; want bool, []byte, civil.Date, float64, int64, big.Rat, string, time.Time or a slice of one of these", value)
}

type fixedShard struct {
	condition string
	value     any
	id        ShardID
}

func (s fixedShard) ID() ShardID { return s.id }

func (s fixedShard) Filter(time.Time, time.Time) (string, map[string]any) {
	return s.condition, map[string]any{"shards": s.value}
}

// shardText returns the text and the type for the ShardID of a value. The text is in the coding of Spanner's API. A
// NUMERIC gets the type STRING, since the table of SpannerTable has no NUMERIC column.
func shardText(value any) (string, spannerpb.TypeCode, bool) {
	switch v := value.(type) {
	case bool:
		return strconv.FormatBool(v), spannerpb.TypeCode_BOOL, true
	case []byte:
		return base64.StdEncoding.EncodeToString(v), spannerpb.TypeCode_BYTES, true
	case civil.Date:
		return v.String(), spannerpb.TypeCode_DATE, true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), spannerpb.TypeCode_FLOAT64, true
	case int64:
		return strconv.FormatInt(v, 10), spannerpb.TypeCode_INT64, true
	case big.Rat:
		return decimal(&v), spannerpb.TypeCode_STRING, true
	case string:
		return v, spannerpb.TypeCode_STRING, true
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), spannerpb.TypeCode_TIMESTAMP, true
	}
	return "", 0, false
}

// shardList returns a list of shards as Google's Java library Spanner Change Watcher writes it into the column
// SHARD_ID_STRING. The values are separated by commas. Strings are in base64; floating-point numbers and timestamps have
// the form in which Java prints them.
func shardList(value any) (string, bool) {
	switch v := value.(type) {
	case []bool:
		return join(v, strconv.FormatBool), true
	case [][]byte:
		return join(v, base64.StdEncoding.EncodeToString), true
	case []civil.Date:
		return join(v, civil.Date.String), true
	case []float64:
		return join(v, javaDouble), true
	case []int64:
		return join(v, func(n int64) string { return strconv.FormatInt(n, 10) }), true
	case []big.Rat:
		return join(v, func(r big.Rat) string { return decimal(&r) }), true
	case []string:
		return join(v, func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }), true
	case []time.Time:
		return join(v, javaTimestamp), true
	}
	return "", false
}

func join[T any](list []T, text func(T) string) string {
	var parts []string
	for _, v := range list {
		parts = append(parts, text(v))
	}
	return strings.Join(parts, ",")
}

// decimal formats a NUMERIC without trailing zeros after the decimal point.
func decimal(r *big.Rat) string {
	s := spanner.NumericString(r)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// javaDouble formats a number as Java's Double.toString does.
func javaDouble(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+") + "inity"
	case abs != 0 && (abs < 1e-3 || abs >= 1e7):
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		n, _ := strconv.Atoi(exponent)
		return withFraction(mantissa) + "E" + strconv.Itoa(n)
	}
	return withFraction(strconv.FormatFloat(f, 'f', -1, 64))
}

func withFraction(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}

// javaTimestamp formats a time as toString of Java's com.google.cloud.Timestamp does: with a fraction of nine digits, or
// without a fraction if the nanoseconds are zero.
func javaTimestamp(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// NotNullShard selects the rows whose shard column is not NULL. A poll can then use a NULL_FILTERED index on the shard
// column and the commit timestamp. The index stays small if TableOptions.PruneAfter removes old rows from it.
// NotNullShard suits shard columns with few different values, since each poll searches the index once for each value.
func NotNullShard(column string) ShardProvider { return notNullShard(column) }

type notNullShard string

func (notNullShard) ID() ShardID { return ShardID{} }

func (s notNullShard) Filter(time.Time, time.Time) (string, map[string]any) {
	return quote(string(s)) + " IS NOT NULL", nil
}

// quote returns a name as a quoted identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "\\`") + "`" }
