package fn

import (
	"github.com/crowfoot-db/crowfoot/stats/distribution"
	"github.com/crowfoot-db/crowfoot/value"
)

// distributions are functions that read the histograms in columns of SPANNER_SYS. See
// https://cloud.google.com/spanner/docs/introspection/query-statistics, "Percentile values and latency for queries".
var distributions = []record{
	{name: "spanner_sys.distribution_percentile",
		doc: "The value that so many percent of a distribution do not exceed; NULL if the distribution is empty.",
		overloads: []overload{
			on("STRUCT, FLOAT64 -> FLOAT64", strict(percentileOfStruct)),
			on("STRING, FLOAT64 -> FLOAT64", strict(percentileOfJSON)),
		}},
}

func percentileOfStruct(_ *Context, args []value.Value) (value.Value, error) {
	h, ok := distribution.FromValue(args[0])
	if !ok {
		return value.Null(value.Float64), nil
	}
	return percentile(h, args[1].AsFloat64())
}

func percentileOfJSON(_ *Context, args []value.Value) (value.Value, error) {
	h, err := distribution.FromJSON(args[0].AsString())
	if err != nil {
		return badArgument("The first argument to the function SPANNER_SYS.DISTRIBUTION_PERCENTILE must be a distribution in JSON.")
	}
	return percentile(h, args[1].AsFloat64())
}

func percentile(h distribution.Histogram, p float64) (value.Value, error) {
	if !(p >= 0 && p <= 100) { // NaN included
		return badArgument("The second argument to the function SPANNER_SYS.DISTRIBUTION_PERCENTILE must be between 0 and 100.")
	}
	x, ok := h.Percentile(p)
	if !ok {
		return value.Null(value.Float64), nil
	}
	return value.OfFloat64(x), nil
}
