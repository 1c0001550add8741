package studies

import (
	"testing"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// TestReads checks that StatisticsKey.Reads recognizes the columns of a table and of an index in READ_COLUMNS, where
// the key appears with its columns' names or as _exists.
func TestReads(t *testing.T) {
	table, covering, keys := read{}.asked(), read{index: userIndex, columns: []string{"id", storedIn}}.asked(), read{index: userIndex, columns: []string{"id"}}.asked()
	var all []string
	for _, c := range userColumns[1:] {
		all = append(all, userTable+"."+c)
	}
	for _, c := range []struct {
		call    harness.StatisticsKey
		columns []string
		want    bool
	}{
		{table, append([]string{"usertable._exists"}, all...), true},
		{table, append([]string{"usertable.id"}, all...), true},
		{table, []string{"usertable._exists"}, false},
		{covering, []string{userIndex + "._exists", userIndex + "." + storedIn}, true},
		{covering, []string{userIndex + "._exists"}, false},
		{keys, []string{userIndex + "._exists"}, true},
		{keys, []string{userIndex + ".id"}, true},
		{keys, []string{"usertable._exists"}, false},
	} {
		if got := c.call.Reads(c.columns); got != c.want {
			t.Errorf("%v with %v: %v", c.call, c.columns, got)
		}
	}
}
