package table

import (
	"sync"
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
)

// TestDescriptors checks that goroutines that are the first to write a table, at the same time, share one descriptor,
// and that a later schema version has a descriptor of its own. A column that is generated from itself must be an error.
func TestDescriptors(t *testing.T) {
	script := newScript()
	if err := script.ddl("CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	tab := script.catalog.Table("T")
	version, later := NewDescriptors(script.catalog), NewDescriptors(script.catalog)
	got := make([]*descriptor, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = version.of(tab); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, d := range got {
		if d == nil || d != got[0] || d.table != tab {
			t.Errorf("descriptors %p and %p", d, got[0])
		}
	}
	if d, err := later.of(tab); err != nil || d == got[0] {
		t.Errorf("a later version has descriptor %p, %v", d, err)
	}
	loop := &schema.Column{Name: "C", Stored: true}
	loop.Generated = &schema.Expr{Uses: []*schema.Column{loop}}
	if _, err := later.of(&schema.Table{Name: "Loop", Columns: []*schema.Column{loop}}); err == nil {
		t.Error("a column that is generated from itself has a descriptor")
	}
}
