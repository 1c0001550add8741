package analyze

import (
	"strings"
	"testing"
)

func TestParameters(t *testing.T) {
	for _, c := range []struct{ sql, named, names string }{
		{"SELECT 1", "SELECT 1", ""},
		{"SELECT ?, 'a?b', ? -- ?", "SELECT @p1, 'a?b', @p2 -- ?", "p1 p2"},
		{"SELECT @b, @A, @B, @@x, `@c`, \"@d\"", "SELECT @b, @A, @B, @@x, `@c`, \"@d\"", "b a"},
		{"@{JOIN_METHOD=hash} SELECT @5 @`q r`", "@{JOIN_METHOD=hash} SELECT @5 @`q r`", "q r"},
		{"SELECT r'''?''', ?", "SELECT r'''?''', @p1", "p1"},
		{"SELECT @", "SELECT @", ""},
	} {
		named, names := Parameters(c.sql)
		if named != c.named || strings.Join(names, " ") != c.names {
			t.Errorf("%s: %s, %q", c.sql, named, names)
		}
	}
}
