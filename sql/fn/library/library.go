// Package library lists all scalar functions of GoogleSQL. It contains no function itself. Its tests cover all scalar
// functions, aggregates and casts.
//
// Imports of this module: sql/fn, sql/fn/aggregate, sql/fn/arrays, sql/fn/json, sql/fn/mathematics, sql/fn/operators, sql/fn/protobuf, sql/fn/text, sql/fn/timestamps, sql/fn/utility, sql/tree.
package library

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/fn/arrays"
	"github.com/crowfoot-db/crowfoot/sql/fn/json"
	"github.com/crowfoot-db/crowfoot/sql/fn/mathematics"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/fn/text"
	"github.com/crowfoot-db/crowfoot/sql/fn/timestamps"
	"github.com/crowfoot-db/crowfoot/sql/fn/utility"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// scalars holds all scalar functions. If several families have overloads of the same name, Lookup tries them in the
// order of this list.
var scalars = fn.NewRegistry(operators.Logic, operators.Comparison, operators.Conditional, operators.Arithmetic, operators.Bitwise, mathematics.Rounding, mathematics.Functions,
	text.Basic, text.Substrings, text.Encodings, text.Likes, text.Regexps, utility.Hashes,
	timestamps.Dates, timestamps.Timestamps, timestamps.Formats, timestamps.Operators, timestamps.Extracts, timestamps.Intervals,
	arrays.Basic, arrays.Search, mathematics.Vectors, utility.UUIDs, json.Queries, json.Conversions, json.Makers,
	json.Changes, json.Searches, text.Formats, utility.Network, utility.Compression, utility.Distributions, utility.Sequences)

// onFields holds the functions on fields of PROTO. In GoogleSQL's resolved tree they are not functions but nodes of
// their own. Their calls in a tree.Statement have Function.Fields set.
var onFields = fn.NewRegistry(protobuf.Fields)

// Lookup returns the implementation for a call of a scalar function.
func Lookup(f *tree.Function) (*fn.Scalar, error) {
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

// Doc returns the description of a function: a line for each signature, and a line of text. It returns "" for a name
// that Names does not list.
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

// descriptions returns the descriptions of all functions: first of the scalar functions, then of the aggregates.
func descriptions() []fn.Description {
	return append(scalars.Descriptions(), aggregate.Descriptions()...)
}
