package analyze

import (
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
)

// TestParameterWithNameOfCaller: a function F may have a parameter with the name of a function that calls F.
func TestParameterWithNameOfCaller(t *testing.T) {
	c, err := applyAll(schema.NewCatalog(), "CREATE FUNCTION F(G INT64) RETURNS INT64 AS (G + 1);\nCREATE FUNCTION G(X INT64) RETURNS INT64 AS (F(X))")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SELECT F(1)", "SELECT G(1)", "SELECT F(G(1))"} {
		if _, _, err := New(c, nil).Statement(t.Context(), sql, nil, Options{}); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestStoppedWhileLoading: a light statement is stopped while the objects that a function's text names are added to
// the catalog of an engine. The next statement still finds all of these objects.
func TestStoppedWhileLoading(t *testing.T) {
	c, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64) PRIMARY KEY (K);\nCREATE FUNCTION F() RETURNS INT64 AS ((SELECT MAX(T.K) FROM T))")
	if err != nil {
		t.Fatal(err)
	}
	a := New(c, nil)
	stopped := false
	err = a.with(t.Context(), lightWeight, "", func(l *library) {
		if l.engine.discard {
			return // the pool has stopped the statement and runs it again as a heavy one
		}
		for l.engine.spent() <= lightTime {
		}
		stopped, l.engine.steps = true, stepsToRest-1
		l.addNamed(a.namesIn("SELECT F()"))
		t.Error("the statement was not stopped")
	})
	if err != nil || !stopped {
		t.Fatal(err)
	}
	if _, _, err := a.Statement(t.Context(), "SELECT F()", nil, Options{}); err != nil {
		t.Error(err)
	}
}
