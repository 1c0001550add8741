package schema

import (
	"slices"
	"testing"
)

func TestSplitScript(t *testing.T) {
	got, err := SplitScript("-- one; two\nCREATE SCHEMA a ;;\n/* ; */ CREATE SCHEMA `b`; # end\nALTER DATABASE d SET OPTIONS (x = ';')\n-- last")
	want := []string{"CREATE SCHEMA a", "CREATE SCHEMA `b`", "ALTER DATABASE d SET OPTIONS (x = ';')"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := SplitScript("CREATE 'x"); err == nil {
		t.Error("an open string is no error")
	}
}
