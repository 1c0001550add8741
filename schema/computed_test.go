package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestOriginOfMany checks that ComputedFrom returns a short string, even in a table of 100 columns each of which
// reads all columns before it.
func TestOriginOfMany(t *testing.T) {
	columns := []*Column{{ID: 1, Name: "C", Type: value.Int64Type, KeyOrdinal: -1}}
	for i := range 100 {
		names := make([]string, len(columns))
		for at, c := range columns {
			names[at] = c.Name
		}
		e := &Expr{SQL: strings.Join(names, " + "), Uses: slices.Clone(columns)}
		columns = append(columns, &Column{ID: ColumnID(i + 2), Name: fmt.Sprintf("C%d", i), Type: value.Int64Type, KeyOrdinal: -1, Generated: e})
	}
	texts := map[string]bool{}
	for _, c := range columns {
		text := c.ComputedFrom()
		if len(text) > 100 || texts[text] {
			t.Errorf("%s: %.200s", c.Name, text)
		}
		texts[text] = true
	}
}
