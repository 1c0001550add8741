package distribution

import (
	"encoding/json"
	"fmt"

	"github.com/crowfoot-db/crowfoot/value"
)

// Type is the type of distribution columns: an array of one struct.
var Type = value.ArrayOf(value.StructOf(
	value.Field{Name: "COUNT", Type: value.Int64Type},
	value.Field{Name: "MEAN", Type: value.Float64Type},
	value.Field{Name: "SUM_OF_SQUARED_DEVIATION", Type: value.Float64Type},
	value.Field{Name: "NUM_FINITE_BUCKETS", Type: value.Int64Type},
	value.Field{Name: "GROWTH_FACTOR", Type: value.Float64Type},
	value.Field{Name: "SCALE", Type: value.Float64Type},
	value.Field{Name: "BUCKET_COUNTS", Type: value.ArrayOf(value.Int64Type)},
))

// fields is the number of fields of the struct in Type.
const fields = 7

// Value returns the histogram as the value of a distribution column.
func (h Histogram) Value() value.Value {
	counts := make([]value.Value, len(h.Buckets))
	for i, c := range h.Buckets {
		counts[i] = value.OfInt64(c)
	}
	return value.OfArray([]value.Value{value.OfStruct([]value.Value{
		value.OfInt64(h.Count),
		value.OfFloat64(h.Mean),
		value.OfFloat64(h.Deviation),
		value.OfInt64(h.FiniteBuckets),
		value.OfFloat64(h.Growth),
		value.OfFloat64(h.Scale),
		value.OfArray(counts),
	})})
}

// FromValue converts the struct in a distribution column to a Histogram. It returns false for NULL and for a value of
// another type.
func FromValue(v value.Value) (h Histogram, ok bool) {
	if v.IsNull() || v.Kind() != value.Struct || len(v.AsList()) != fields {
		return h, false
	}
	f := v.AsList()
	h = Histogram{Count: f[0].AsInt64(), Mean: f[1].AsFloat64(), Deviation: f[2].AsFloat64(),
		FiniteBuckets: f[3].AsInt64(), Growth: f[4].AsFloat64(), Scale: f[5].AsFloat64()}
	if f[6].IsNull() {
		return h, false
	}
	for _, c := range f[6].AsList() {
		h.Buckets = append(h.Buckets, c.AsInt64())
	}
	return h, true
}

// text is the JSON form of a Histogram. Its members have the names of the fields of Type.
type text struct {
	Count         int64   `json:"COUNT"`
	Mean          float64 `json:"MEAN"`
	Deviation     float64 `json:"SUM_OF_SQUARED_DEVIATION"`
	FiniteBuckets int64   `json:"NUM_FINITE_BUCKETS"`
	Growth        float64 `json:"GROWTH_FACTOR"`
	Scale         float64 `json:"SCALE"`
	Buckets       []int64 `json:"BUCKET_COUNTS"`
}

// JSON returns the histogram in the form of the columns named ..._JSON_STRING.
func (h Histogram) JSON() string {
	b, err := json.Marshal(text(h))
	if err != nil {
		return "{}" // the histogram has NaN or infinity, which JSON cannot represent
	}
	return string(b)
}

// FromJSON converts the output of JSON to a Histogram.
func FromJSON(s string) (Histogram, error) {
	var t text
	if err := json.Unmarshal([]byte(s), &t); err != nil {
		return Histogram{}, fmt.Errorf("read distribution: %w", err)
	}
	return Histogram(t), nil
}
