package schema

import (
	"fmt"
	"testing"
	"time"
)

// clockCompiler is a wordCompiler whose method Now returns the field now.
type clockCompiler struct {
	wordCompiler
	now time.Time
}

func (c clockCompiler) Now() time.Time { return c.now }

// TestStatisticsPackagesGo checks that ANALYZE deletes packages that are too old or too many. It must not delete
// packages with allow_gc = false, nor the package that the database option optimizer_statistics_package names.
func TestStatisticsPackagesGo(t *testing.T) {
	c, now := NewCatalog(), time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	apply := func(statement string) {
		t.Helper()
		next, _, err := c.Apply(statement, clockCompiler{now: now})
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	apply("ANALYZE")
	kept := c.StatisticsPackages()[0].Name
	apply("ALTER STATISTICS " + kept + " SET OPTIONS (allow_gc = false)")
	now = now.Add(time.Hour)
	apply("ANALYZE")
	pinned := c.StatisticsPackages()[1].Name
	apply("ALTER DATABASE d SET OPTIONS (optimizer_statistics_package = '" + pinned + "')")
	for range 2 * maxStatisticsPackages {
		now = now.Add(time.Minute)
		apply("ANALYZE")
	}
	if n := len(c.StatisticsPackages()); n != maxStatisticsPackages+2 {
		t.Errorf("%d packages", n)
	}
	now = now.Add(statisticsLife + time.Minute)
	apply("ANALYZE")
	var names []string
	for _, p := range c.StatisticsPackages() {
		names = append(names, p.Name)
	}
	if want := []string{kept, pinned, now.Format(statisticsName)}; fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", names, want)
	}
	for _, name := range []string{"latest", kept, pinned} {
		if !c.HasStatisticsPackage(name) {
			t.Errorf("%s cannot be named", name)
		}
	}
	if c.HasStatisticsPackage("other") {
		t.Error("a package that is not there can be named")
	}
}
