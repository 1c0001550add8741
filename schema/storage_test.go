package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestUnmarshalDamaged checks that Unmarshal does not panic if one object of an encoded catalog is cut short or has one
// digit changed. It must return an error if an object is cut short.
func TestUnmarshalDamaged(t *testing.T) {
	whole := encoded(t, nil, fuzzCatalog(t))
	refused := 0
	for id, data := range whole.Objects {
		read := func(damaged []byte) error {
			e := &Encoding{Catalog: whole.Catalog, Objects: maps.Clone(whole.Objects)}
			e.Objects[id] = damaged
			_, err := Unmarshal(nil, e, wordCompiler{})
			return err
		}
		for i, c := range data {
			if c < '0' || c > '9' {
				continue
			}
			damaged := bytes.Clone(data)
			damaged[i] = '9'
			if read(damaged) != nil {
				refused++
			}
		}
		for n := range data {
			if read(data[:n]) == nil {
				t.Errorf("the first %d of %d bytes are accepted", n, len(data))
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

// TestUnmarshalDropped checks that Unmarshal returns an error for a version in which a table was dropped while another
// table still refers to it.
func TestUnmarshalDropped(t *testing.T) {
	c := fuzzCatalog(t)
	for _, stmt := range []string{
		"CREATE TABLE A (k INT64) PRIMARY KEY (k)",
		"CREATE TABLE B (k INT64) PRIMARY KEY (k)",
		"CREATE TABLE Both (k INT64, FOREIGN KEY (k) REFERENCES A (k), FOREIGN KEY (k) REFERENCES B (k)) PRIMARY KEY (k)",
	} {
		var err error
		if c, _, err = c.Apply(stmt, wordCompiler{}); err != nil {
			t.Fatal(err)
		}
	}
	next, _, err := c.Apply("ALTER TABLE A ADD COLUMN v INT64", wordCompiler{})
	if err != nil {
		t.Fatal(err)
	}
	e := encoded(t, c, next)
	for _, whole := range []*Encoding{{Catalog: e.Catalog, Objects: map[TableID][]byte{}}, e} {
		whole.Objects[c.Table("B").ID] = nil
		if _, err := Unmarshal(c, whole, wordCompiler{}); !errors.Is(err, errDangling) {
			t.Errorf("%d tables are loaded, error: %v", len(whole.Objects), err)
		}
	}
}

func TestUnmarshalNewerFormat(t *testing.T) {
	_, err := Unmarshal(nil, &Encoding{Catalog: []byte(`{"format":3,"next_id":1}`)}, wordCompiler{})
	if err == nil || !strings.Contains(err.Error(), "unknown format 3") {
		t.Errorf("got %v", err)
	}
}

// failingCompiler is a wordCompiler whose first calls of CompileExpr fail. failures counts how many will still fail.
type failingCompiler struct {
	Compiler
	failures int
}

func (c *failingCompiler) CompileExpr(catalog *Catalog, t *Table, sql string, want *value.Type) (*Expr, error) {
	if c.failures > 0 {
		c.failures--
		return nil, errors.New("no memory")
	}
	return wordCompiler{}.CompileExpr(catalog, t, sql, want)
}

// TestStoredExpressionIsTriedAgain checks that an expression whose first compilation has failed is compiled again at
// the next evaluation.
func TestStoredExpressionIsTriedAgain(t *testing.T) {
	c, _, err := NewCatalog().Apply("CREATE TABLE T (K INT64, D INT64 DEFAULT (1)) PRIMARY KEY (K)", wordCompiler{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Marshal(nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Unmarshal(nil, e, &failingCompiler{failures: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := loaded.Table("T").Column("D").Default
	if _, err := d.Eval(nil); err == nil {
		t.Error("the compiler's error is lost")
	}
	if _, err := d.Eval(nil); err != nil {
		t.Error(err)
	}
}

func (c *failingCompiler) NextValue(name string, g *Generator) func([]value.Value) (value.Value, error) {
	return wordCompiler{}.NextValue(name, g)
}

// TestUnmarshalReadsWhatChanged checks that the memory that Unmarshal allocates for a version depends on what has
// changed in it, and not on the number of tables.
func TestUnmarshalReadsWhatChanged(t *testing.T) {
	apply := func(c *Catalog, stmt string) *Catalog {
		next, _, err := c.Apply(stmt, wordCompiler{})
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	bytesFor := func(tables int) (allocated uint64) {
		c := NewCatalog()
		for i := range tables {
			c = apply(c, fmt.Sprintf("CREATE TABLE T%d (K INT64, V STRING(MAX)) PRIMARY KEY (K)", i))
		}
		next := apply(c, "CREATE INDEX ByV ON T7 (V)")
		e := encoded(t, c, next)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Unmarshal(c, e, wordCompiler{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := bytesFor(10), bytesFor(3000); many > few+16<<10 {
		t.Errorf("%d bytes of 10 tables, %d of 3000", few, many)
	}
}
