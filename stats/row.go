package stats

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/distribution"
	"github.com/crowfoot-db/crowfoot/value"
)

// A row is a tally of an interval that has ended. Columns compute their values from it.
type row struct {
	end    time.Time
	length time.Duration // length of the interval
	*tally
}

// A column is a column of an interval table.
type column struct {
	name string
	typ  *value.Type
	of   func(row) value.Value
	top  bool // only TOP tables have the column; TOTAL tables do not
}

var stringsType = value.ArrayOf(value.StringType)

var intervalEnd = column{name: "INTERVAL_END", typ: value.TimestampType, of: func(r row) value.Value { return value.OfTime(r.end) }}

// top returns c as a column that only TOP tables have.
func top(c column) column {
	c.top = true
	return c
}

// sum returns a column that shows the tally's sums[i] unchanged.
func sum(name string, i int) column {
	return column{name: name, typ: value.Int64Type, of: func(r row) value.Value { return value.OfInt64(r.sums[i]) }}
}

// sumSeconds returns a column that shows the tally's sums[i], a sum of durations, in seconds.
func sumSeconds(name string, i int) column {
	return column{name: name, typ: value.Float64Type, of: func(r row) value.Value { return value.OfFloat64(float64(r.sums[i]) / nanos) }}
}

// Units of sums: the number by which a sum is divided to show it.
const (
	ones      = 1
	nanos     = 1e9
	millionth = 1e6
)

// average returns a column that shows the tally's sums[i], divided by unit and by the number of executions. The
// parameter of() returns this number. It is 0 if an earlier interval has counted the execution, and this interval has
// only a part of its cost (see Query.Continues). Then the sum is divided by unit only.
func average(name string, i int, unit float64, of func(*tally) int64) column {
	return column{name: name, typ: value.Float64Type, of: func(r row) value.Value {
		return value.OfFloat64(float64(r.sums[i]) / unit / float64(max(of(r.tally), 1)))
	}}
}

func text(name string, of func(*subject) string) column {
	return column{name: name, typ: value.StringType, top: true, of: func(r row) value.Value { return value.OfString(of(&r.subject)) }}
}

func fingerprintColumn(name string) column {
	return column{name: name, typ: value.Int64Type, top: true, of: func(r row) value.Value { return value.OfInt64(r.subject.fingerprint) }}
}

func nameColumn(name string) column { return text(name, func(s *subject) string { return s.name }) }
func tagColumn(name string) column  { return text(name, func(s *subject) string { return s.tag }) }

// list returns a column that shows lists[i] of the tally's subject.
func list(name string, i int) column {
	return column{name: name, typ: stringsType, top: true, of: func(r row) value.Value { return stringsValue(r.subject.lists[i]) }}
}

func stringsValue(list []string) value.Value {
	vs := make([]value.Value, len(list))
	for i, s := range list {
		vs[i] = value.OfString(s)
	}
	return value.OfArray(vs)
}

func histogram(r row) distribution.Histogram {
	if r.dist == nil {
		return new(distribution.Distribution).Histogram()
	}
	return r.dist.Histogram()
}

func distributionColumn(name string) column {
	return column{name: name, typ: distribution.Type, of: func(r row) value.Value { return histogram(r).Value() }}
}

func distributionText(name string) column {
	return column{name: name, typ: value.StringType, of: func(r row) value.Value { return value.OfString(histogram(r).JSON()) }}
}

// structs returns an ARRAY with a STRUCT for each element of a list.
func structs[T any](list []T, fields func(T) []value.Value) value.Value {
	vs := make([]value.Value, len(list))
	for i, e := range list {
		vs[i] = value.OfStruct(fields(e))
	}
	return value.OfArray(vs)
}

// structsText formats an ARRAY of STRUCTs of strings and integers as JSON. t is its type.
func structsText(t *value.Type, array value.Value) string {
	var s strings.Builder
	s.WriteByte('[')
	for i, element := range array.AsList() {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteByte('{')
		for j, v := range element.AsList() {
			if j > 0 {
				s.WriteByte(',')
			}
			s.WriteString(jsonText(t.Elem.Fields[j].Name) + ":")
			if v.Kind() == value.String {
				s.WriteString(jsonText(v.AsString()))
			} else {
				s.WriteString(jsonText(v.AsInt64()))
			}
		}
		s.WriteByte('}')
	}
	s.WriteByte(']')
	return s.String()
}

// jsonText formats strings and numbers as JSON. It panics on values that JSON cannot represent.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("marshal statistics: " + err.Error())
	}
	return string(b)
}
