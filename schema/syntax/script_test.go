package syntax

import (
	"errors"
	"slices"
	"testing"

	"github.com/crowfoot-db/crowfoot/usererror"
)

func TestSplitScript(t *testing.T) {
	got, err := SplitScript("-- one; two\nCREATE SCHEMA a ;;\n/* ; */ CREATE SCHEMA `b`; # end\nALTER DATABASE d SET OPTIONS (x = ';')\n-- last")
	want := []ScriptStatement{{"CREATE SCHEMA a", 2, 1}, {"CREATE SCHEMA `b`", 3, 9}, {"ALTER DATABASE d SET OPTIONS (x = ';')", 4, 1}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestSplitScriptErrors(t *testing.T) {
	_, err := SplitScript("CREATE SCHEMA a;\n CREATE 'x")
	var wrong *usererror.Error
	if !errors.As(err, &wrong) || wrong.Syntax == "" || wrong.Place.Line != 2 || wrong.Place.Column != 9 {
		t.Errorf("an open string in line 2, column 9, is %v", err)
	}
}
