package fn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// scalars holds all scalar functions. The overloads of a name are tried in the order of this list.
var scalars = newRegistry(logic, comparison, conditional, arithmetic, bitwise, rounding, mathematics,
	stringFunctions, substrings, encodings, likes, regexps, hashes,
	dateFunctions, timestampFunctions, dateFormats, dateOperators, extracts, intervals,
	arrays, arraySearch, vectors, utilities, jsonQueries, jsonConversions, jsonMakers,
	jsonChanges, jsonSearches, formats, network, compressions, distributions, sequenceFunctions)

// onFields holds the functions on fields of PROTO. They are not functions in GoogleSQL; their calls have Function.Fields set.
var onFields = newRegistry(protoFields)

// Lookup returns the implementation for a call of a scalar function.
func Lookup(f *tree.Function) (*Scalar, error) {
	if f.Fields != nil {
		return onFields.Lookup(f)
	}
	return scalars.Lookup(f)
}

// Names returns the names of all functions, scalar and aggregate, sorted.
func Names() []string {
	var names []string
	for _, d := range descriptions() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// Doc returns a description of a function: a line for each signature and a line of text. It is empty for a name that Names does not list.
func Doc(name string) string {
	for _, d := range descriptions() {
		if d.Name != name {
			continue
		}
		var b strings.Builder
		for _, signature := range d.Signatures {
			args, result, _ := strings.Cut(signature, "-> ")
			fmt.Fprintf(&b, "%s(%s) -> %s\n", name, strings.TrimSpace(args), result)
		}
		return b.String() + d.Doc
	}
	return ""
}

// descriptions describes all functions: the scalar ones, then the aggregates.
func descriptions() []Description {
	return append(scalars.Descriptions(), aggregateDescriptions()...)
}
