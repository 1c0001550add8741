package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// StatisticsPackage is an optimizer statistics package, which ANALYZE creates. Crowfoot stores and shows packages, so
// that a query or a database option can name one. They have no effect, because the planner looks at the data itself.
// Source:
// https://cloud.google.com/spanner/docs/query-optimizer/overview.
type StatisticsPackage struct {
	Entity
	Created time.Time `json:"created"`
	Kept    bool      `json:"kept,omitempty"` // the option allow_gc is false, so the package is not deleted
}

var statisticsPackages = &objectKind{
	name: "statistics_package", noun: "Statistics package", apart: true,
	empty: func() Object { return new(StatisticsPackage) },
}

const (
	// statisticsLife is how long a package is stored if its option allow_gc does not prevent its deletion:
	// https://cloud.google.com/spanner/docs/query-optimizer/overview.
	statisticsLife = 30 * 24 * time.Hour
	// maxStatisticsPackages is the largest number of packages that ANALYZE leaves, not counting those that must not be
	// deleted.
	maxStatisticsPackages = 30
	statisticsName        = "auto_20060102_15_04_05UTC"
)

// StatisticsPackages returns the packages in order of creation.
func (c *Catalog) StatisticsPackages() []*StatisticsPackage {
	return slices.Collect(objectsOf[*StatisticsPackage](c))
}

// HasStatisticsPackage reports whether a query may use the optimizer statistics package called name. If the database
// option optimizer_statistics_package names a package, a query may use it even if it does not exist, because DDL copied
// from a database in Spanner may set the option to a package of that database.
func (c *Catalog) HasStatisticsPackage(name string) bool {
	return strings.EqualFold(name, "latest") || name == c.Options[statisticsOption] || c.statisticsPackage(name) != nil
}

const statisticsOption = "optimizer_statistics_package"

func (c *Catalog) statisticsPackage(name string) *StatisticsPackage {
	return objectByName[*StatisticsPackage](c, statisticsPackages, "", name)
}

func (*StatisticsPackage) kind() *objectKind { return statisticsPackages }

// sql returns nothing, because the statistics of one database do not fit another one.
func (*StatisticsPackage) sql(*Catalog) []string { return nil }

// analyze creates a package whose name is the current time. It deletes packages that are older than statisticsLife, and
// the oldest ones if there would be more than maxStatisticsPackages.
func (d *draft) analyze() error {
	now := d.compiler.Now().UTC().Truncate(time.Second)
	name := now.Format(statisticsName)
	if d.statisticsPackage(name) != nil {
		return d.nothing()
	}
	collectable := slices.DeleteFunc(d.StatisticsPackages(), func(p *StatisticsPackage) bool {
		return p.Kept || p.Name == d.Options[statisticsOption]
	})
	for i, p := range collectable {
		if len(collectable)-i >= maxStatisticsPackages || now.Sub(p.Created) > statisticsLife {
			d.drop(p)
		}
	}
	d.put(&StatisticsPackage{Entity: Entity{ID: d.newID(), Name: name}, Created: now})
	return nil
}

// alterStatistics runs ALTER STATISTICS p SET OPTIONS (allow_gc = true | false).
func (d *draft) alterStatistics(s *ast.AlterStatistics) error {
	old := d.statisticsPackage(s.Name.Name)
	if old == nil {
		return statisticsPackages.missing("", s.Name.Name)
	}
	altered := *old
	for _, r := range s.Options.Records {
		option := strings.ToLower(r.Name.Name)
		if option != "allow_gc" {
			return usererror.BadObjectOption(option, statisticsPackages.noun, old.Name, "There is no such option")
		}
		allow, ok := r.Value.(*ast.BoolLiteral)
		if !ok {
			return usererror.BadObjectOption(option, statisticsPackages.noun, old.Name, "The value must be true or false")
		}
		altered.Kept = !allow.Value
	}
	d.put(&altered)
	return nil
}
