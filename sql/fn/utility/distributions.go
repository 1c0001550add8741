package utility

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/stats/distribution"
	"github.com/crowfoot-db/crowfoot/value"
)

// Distributions has the function that reads the histograms in columns of SPANNER_SYS. See
// https://cloud.google.com/spanner/docs/introspection/query-statistics, "Percentile values and latency for queries".
var Distributions = []fn.Record{
	{Name: "spanner_sys.distribution_percentile",
		Doc: "The value that so many percent of a distribution do not exceed; NULL if the distribution is empty.",
		Overloads: []fn.Overload{
			fn.On("STRUCT, FLOAT64 -> FLOAT64", fn.Strict(percentileOfStruct)),
			fn.On("STRING, FLOAT64 -> FLOAT64", fn.Strict(percentileOfJSON)),
		}},
}

func percentileOfStruct(_ *fn.Context, args []value.Value) (value.Value, error) {
	h, ok := distribution.FromValue(args[0])
	if !ok {
		return value.Null(value.Float64), nil
	}
	return percentile(h, args[1].AsFloat64())
}

func percentileOfJSON(_ *fn.Context, args []value.Value) (value.Value, error) {
	h, err := distribution.FromJSON(args[0].AsString())
	if err != nil {
		return fn.BadArgument("The first argument to the function SPANNER_SYS.DISTRIBUTION_PERCENTILE must be a distribution in JSON.")
	}
	return percentile(h, args[1].AsFloat64())
}

func percentile(h distribution.Histogram, p float64) (value.Value, error) {
	if !(p >= 0 && p <= 100) { // also refuses NaN
		return fn.BadArgument("The second argument to the function SPANNER_SYS.DISTRIBUTION_PERCENTILE must be between 0 and 100.")
	}
	x, ok := h.Percentile(p)
	if !ok {
		return value.Null(value.Float64), nil
	}
	return value.OfFloat64(x), nil
}
