package schema

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// FuzzDDL applies arbitrary statements to a catalog with objects of many kinds. No statement may panic, and all
// errors must be user errors. If a statement succeeds, checkInvariants and checkRoundTrips must accept the new
// catalog.
func FuzzDDL(f *testing.F) {
	for _, stmt := range goldenStatements(f) {
		f.Add(stmt)
	}
	base := fuzzCatalog(f)
	before := base.DDL()
	f.Fuzz(func(t *testing.T, stmt string) {
		if _, err := syntax.SplitScript(stmt); err != nil && usererror.CodeOf(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
		next, change, err := base.Apply(stmt, wordCompiler{})
		if err != nil {
			var user *usererror.Error
			if !errors.As(err, &user) || user.Code == codes.Internal {
				t.Fatalf("%v is not meant for users", err)
			}
			return
		}
		if len(base.DDL()) != len(before) {
			t.Fatal("the catalog applied to has changed")
		}
		_ = changeText(change)
		checkInvariants(t, next)
		checkRoundTrips(t, next)
	})
}

// goldenStatements returns the statements of the scripts in testdata/ddl.
func goldenStatements(tb testing.TB) []string {
	files, err := filepath.Glob("testdata/ddl/*")
	if err != nil {
		tb.Fatal(err)
	}
	var list []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, block := range strings.Split(string(data), "\n----\n") {
			if _, input, ok := strings.Cut(block, "apply\n"); ok {
				list = append(list, strings.Split(input, "\n\n")...)
			}
		}
	}
	return list
}

func fuzzCatalog(tb testing.TB) *Catalog {
	c := NewCatalog()
	c.Database = "db"
	for _, stmt := range []string{
		"CREATE SCHEMA s",
		"CREATE TABLE P (a INT64 NOT NULL, b STRING(10), v INT64 DEFAULT (1), CHECK (v > 0)) PRIMARY KEY (a, b DESC)",
		"CREATE TABLE C (a INT64 NOT NULL, b STRING(10), c INT64, d INT64 AS (c) STORED, e TIMESTAMP) PRIMARY KEY (a, b DESC, c), INTERLEAVE IN PARENT P",
		"CREATE TABLE t (k INT64, x BYTES(5), y ARRAY<STRING(5)>, FOREIGN KEY (k) REFERENCES t (k)) PRIMARY KEY (k)",
		"CREATE TABLE s.t (k INT64, f INT64, CONSTRAINT fk FOREIGN KEY (f) REFERENCES t (k)) PRIMARY KEY (k)",
		"CREATE INDEX i ON C(a, b DESC, d) STORING (e), INTERLEAVE IN P",
		"CREATE UNIQUE NULL_FILTERED INDEX u ON t(x)",
		"CREATE CHANGE STREAM Everything FOR ALL",
		"CREATE TABLE Copied (a INT64) PRIMARY KEY (a), OPTIONS (columnar_policy = 'enabled')",
		"CREATE INDEX ByA ON Copied(a) OPTIONS (columnar_policy = 'disabled')",
		"ALTER INDEX ByA SET OPTIONS (columnar_policy = NULL)",
		"CREATE CHANGE STREAM Parts FOR C(e), t OPTIONS (value_capture_type = 'NEW_ROW', exclude_insert = true)",
	} {
		var err error
		if c, _, err = c.Apply(stmt, wordCompiler{}); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// TestHostile checks that Apply refuses deeply nested statements without deep recursion. If the parser recursed as deep
// as a statement is nested, its stack would exceed 16 MiB, and the test binary would end.
func TestHostile(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	pieces := []string{
		"(", ")", "[", "{", "<", ">", "CASE ", "CASE WHEN ", "NOT ", "- ", "+", "~", "INTERVAL ", "x -> ", "ARRAY<", "STRUCT<a ",
		"CAST(x AS ARRAY<", "CAST(x AS ", "1+", "1*", "a.", "a[1]", "x[", "IF(", "f(", "EXISTS(", "EXISTS(SELECT ", "(SELECT ", "SELECT 1 UNION ALL ",
		"WITH a AS (", "WITH(a AS ", "NEW a {b ", "NEW a(", "@{", "@{a=", "|> WHERE ", "a JOIN ", "FROM a, ", "a AND ", "a OR ", "a = ", "a < ", "a BETWEEN ",
		"a BETWEEN 1 AND ", "a IN ", "a IN (", "a LIKE ", "a IS NOT NULL ", "a IS ", "DATE ", "a COLLATE ", "EXTRACT(", "ARRAY[", "STRUCT(", "(1,",
		"a || ", "a << ", "a | ", "SAFE.", "x AS ", "GRAPH g MATCH (", "-[", "LIMIT ", ",", "\"a\" ", "/* */", "ARRAY<STRUCT<", "CAST(CASE ", "END ", ". ",
		"REPLACE_FIELDS(", "a.*, ", "UNNEST(", "TABLE a ", "MODEL ", "ON ", "USING(", "HAVING MAX ", "?", "@a ", "@@a ",
	}
	frames := []string{"CREATE TABLE t (a INT64 DEFAULT (%s)) PRIMARY KEY ()", "CREATE INDEX i ON P(a) WHERE %s", "CREATE TABLE t (a %s", "CREATE TABLE %s"}
	base := fuzzCatalog(t)
	for _, piece := range pieces {
		for _, frame := range frames {
			for _, size := range []int{syntax.MaxNesting / 2, 1 << 16} {
				stmt := fmt.Sprintf(frame, strings.Repeat(piece, size/len(piece)))
				if _, _, err := base.Apply(stmt, wordCompiler{}); err == nil {
					t.Errorf("%s of %q is accepted", frame, piece)
				} else if usererror.CodeOf(err) == codes.Internal {
					t.Errorf("%s of %q: %v", frame, piece, err)
				}
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	_, _, err := NewCatalog().Apply(strings.Repeat(" ", syntax.MaxBytes+1), wordCompiler{})
	if usererror.CodeOf(err) != codes.InvalidArgument {
		t.Error(err)
	}
	if _, _, err = NewCatalog().Apply("CREATE TABLE \xff", wordCompiler{}); usererror.CodeOf(err) != codes.InvalidArgument {
		t.Error(err)
	}
}
