package system

import (
	"strconv"

	"github.com/crowfoot-db/crowfoot/schema"
)

// sequences adds to b a row for each sequence that users have made. It leaves out the sequences of identity columns,
// because the table COLUMNS lists them.
func sequences(b *builder) {
	for s := range b.catalog.Sequences() {
		b.add("", s.Schema, s.Name, "INT64")
	}
}

func sequenceOptions(b *builder) {
	for s := range b.catalog.Sequences() {
		for _, o := range s.OptionsSet() {
			b.add("", s.Schema, s.Name, o.Name, o.Type, o.Value)
		}
	}
}

// identityCells returns the values of IDENTITY_GENERATION, IDENTITY_KIND, IDENTITY_START_WITH_COUNTER,
// IDENTITY_SKIP_RANGE_MIN and IDENTITY_SKIP_RANGE_MAX for a column. g is the generator of an identity column. For any
// other column g is nil, and all values are NULL.
func identityCells(g *schema.Generator) (cells [5]any) {
	if g == nil {
		return cells
	}
	number := func(n *int64) any {
		if n == nil {
			return nil
		}
		return strconv.FormatInt(*n, 10)
	}
	return [5]any{"BY DEFAULT", "BIT_REVERSED_POSITIVE_SEQUENCE", number(g.Start), number(g.SkipMin), number(g.SkipMax)}
}
