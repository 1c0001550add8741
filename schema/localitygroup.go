package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// LocalityGroup says on which storage, and for how long there, the data of tables and columns is kept. Crowfoot stores
// and shows it, but it has no effect, since there is only one kind of storage. Source:
// https://cloud.google.com/spanner/docs/schema-and-data-model#locality-groups.
type LocalityGroup struct {
	Entity
	Options map[string]string `json:"options,omitempty"` // the options that are set, as text by name
}

var localityGroups = &objectKind{
	name: "locality_group", noun: "Locality group", apart: true, stage: beforeTables,
	empty: func() Object { return new(LocalityGroup) },
}

// defaultLocalityGroup exists without CREATE and can be altered.
const defaultLocalityGroup = "default"

// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#create_locality_group.
const (
	maxLocalityGroups = 16 // per database
	minSpill          = time.Hour
	maxSpill          = 365 * 24 * time.Hour
)

// LocalityGroups returns the locality groups that statements have created or altered, in order of creation.
func (c *Catalog) LocalityGroups() []*LocalityGroup {
	return slices.Collect(objectsOf[*LocalityGroup](c))
}

func (*LocalityGroup) kind() *objectKind { return localityGroups }

func (g *LocalityGroup) sql(*Catalog) []string {
	verb, set := "CREATE", " "
	if g.Name == defaultLocalityGroup {
		verb, set = "ALTER", " SET "
	}
	s := verb + " LOCALITY GROUP " + quote(g.Name)
	if options := textOptionsSQL(g.Options); options != "" {
		s += set + options
	}
	return []string{s}
}

func (d *draft) createLocalityGroup(s *ast.CreateLocalityGroup) error {
	name := strings.Clone(s.Name.Name)
	if d.src.IfExists && objectByName[*LocalityGroup](d.Catalog, localityGroups, "", name) != nil {
		return d.nothing()
	}
	if sameName(name, defaultLocalityGroup) {
		return usererror.CreateDefaultLocalityGroup()
	}
	if err := d.checkNew(localityGroups, "", name); err != nil {
		return err
	}
	if len(d.LocalityGroups()) >= maxLocalityGroups {
		return usererror.TooManyObjects(localityGroups.noun, name, maxLocalityGroups)
	}
	options, err := localityGroupOptions.set(localityGroups, name, nil, s.Options)
	if err != nil {
		return err
	}
	d.put(&LocalityGroup{Entity{d.newID(), "", name}, options})
	return nil
}

func (d *draft) alterLocalityGroup(s *ast.AlterLocalityGroup) error {
	old := objectByName[*LocalityGroup](d.Catalog, localityGroups, "", s.Name.Name)
	switch {
	case old != nil:
	case sameName(s.Name.Name, defaultLocalityGroup):
		old = &LocalityGroup{Entity: Entity{ID: d.newID(), Name: defaultLocalityGroup}}
	case d.src.IfExists:
		return d.nothing()
	default:
		return localityGroups.missing("", s.Name.Name)
	}
	options, err := localityGroupOptions.set(localityGroups, old.Name, old.Options, s.Options)
	if err != nil {
		return err
	}
	d.put(&LocalityGroup{old.Entity, options})
	return nil
}

func (d *draft) dropLocalityGroup(s *ast.DropLocalityGroup) error {
	if sameName(s.Name.Name, defaultLocalityGroup) {
		return usererror.DropDefaultLocalityGroup()
	}
	old := objectByName[*LocalityGroup](d.Catalog, localityGroups, "", s.Name.Name)
	if old == nil && d.src.IfExists {
		return d.nothing()
	}
	if old == nil {
		return localityGroups.missing("", s.Name.Name)
	}
	for t := range d.Tables() {
		if t.isIn(old.Name) {
			return usererror.DropLocalityGroupInUse(old.Name)
		}
	}
	d.drop(old)
	return nil
}

// isIn reports whether the table, a column or an index of it names a locality group.
func (t *Table) isIn(group string) bool {
	return t.LocalityGroup == group ||
		slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.LocalityGroup == group }) ||
		slices.ContainsFunc(t.Indexes, func(i *Index) bool { return i.LocalityGroup == group })
}

var localityGroupOptions = textOptions{"storage": checkStorage, "ssd_to_hdd_spill_timespan": checkSpill}

func checkStorage(text string) string {
	if text != "ssd" && text != "hdd" {
		return "The value must be 'ssd' or 'hdd'"
	}
	return ""
}

func checkSpill(text string) string {
	if d, ok := parseRetention(text); !ok || d < minSpill || d > maxSpill {
		return "The value must be a duration between 1h and 365d, such as '10d'"
	}
	return ""
}
