package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Placement says in which location Spanner stores rows of tables with a placement key:
// https://cloud.google.com/spanner/docs/geo-partitioning. Crowfoot stores and shows placements, and refuses rows that
// name an unknown placement. Apart from that they have no effect, because Crowfoot has only one location.
type Placement struct {
	Entity
	Options map[string]string `json:"options,omitempty"` // the values of the options that are set, by option name
}

var placements = &objectKind{
	name: "placement", noun: "Placement", apart: true, stage: beforeTables,
	empty: func() Object { return new(Placement) },
}

const (
	// DefaultPlacement is the name of the placement that exists in every database.
	DefaultPlacement  = "default"
	instancePartition = "instance_partition"
	maxPlacements     = 50 // per database: https://cloud.google.com/spanner/quotas
)

var placementOptions = textOptions{
	instancePartition:    notEmpty,
	"default_leader":     notEmpty,
	"read_lease_regions": func(text string) string { return "" },
}

func notEmpty(text string) string {
	if text == "" {
		return "The value must not be empty"
	}
	return ""
}

// Placements returns the placements that statements have created, in order of creation.
func (c *Catalog) Placements() []*Placement {
	return slices.Collect(objectsOf[*Placement](c))
}

// HasPlacement reports whether a placement with the given name exists, so that a row may name it in its placement key.
// Upper and lower case matter.
func (c *Catalog) HasPlacement(name string) bool {
	p := objectByName[*Placement](c, placements, "", name)
	return p != nil && p.Name == name || name == DefaultPlacement
}

func (*Placement) kind() *objectKind { return placements }

func (p *Placement) sql(*Catalog) []string {
	return []string{"CREATE PLACEMENT " + quote(p.Name) + " " + textOptionsSQL(p.Options)}
}

func (d *draft) createPlacement(s *ast.CreatePlacement) error {
	name := strings.Clone(s.Name.Name)
	if sameName(name, DefaultPlacement) {
		return usererror.DuplicateName(name)
	}
	if err := d.checkNew(placements, "", name); err != nil {
		return err
	}
	if len(d.Placements()) >= maxPlacements {
		return usererror.TooManyObjects(placements.noun, name, maxPlacements)
	}
	options, err := placementOptions.set(placements, name, nil, s.Options)
	if err != nil {
		return err
	}
	if options[instancePartition] == "" {
		return usererror.BadObjectOption(instancePartition, placements.noun, name, "The option is required")
	}
	d.put(&Placement{Entity{d.newID(), "", name}, options})
	return nil
}

// dropPlacement drops a placement. It adds validations that fail if a row names the placement.
func (d *draft) dropPlacement(s *ast.DropPlacement) error {
	old := objectByName[*Placement](d.Catalog, placements, "", s.Name.Name)
	if old == nil {
		return placements.missing("", s.Name.Name)
	}
	d.drop(old)
	for t := range d.Tables() {
		if c := t.placementKey(); c != nil {
			d.change.Validations = append(d.change.Validations, Validation{Kind: ValidatePlacement, Table: t, Placed: c, Placement: old.Name})
		}
	}
	return nil
}

// placementKey returns the column with PLACEMENT KEY, or nil.
func (t *Table) placementKey() *Column {
	if at := slices.IndexFunc(t.Columns, func(c *Column) bool { return c.PlacementKey }); at >= 0 {
		return t.Columns[at]
	}
	return nil
}

// setPlacementKey makes c, a column of a new table, the table's placement key. def is the column's definition.
func (c *Column) setPlacementKey(t *Table, def *ast.ColumnDef) error {
	switch {
	case c.Type.Kind != value.String || !def.NotNull || def.DefaultSemantics != nil:
		return usererror.PlacementKeyColumn(t.FullName() + "." + c.Name)
	case t.placementKey() != nil:
		return usererror.SeveralPlacementKeys(t.FullName())
	}
	c.PlacementKey = true
	return nil
}

// LocalityGroup says on which storage Spanner keeps the data of tables and columns, and for how long. Crowfoot stores
// and shows locality groups, but they have no effect, because Crowfoot has only one kind of storage. Source:
// https://cloud.google.com/spanner/docs/schema-and-data-model#locality-groups.
type LocalityGroup struct {
	Entity
	Options map[string]string `json:"options,omitempty"` // the values of the options that are set, by option name
}

var localityGroups = &objectKind{
	name: "locality_group", noun: "Locality group", apart: true, stage: beforeTables,
	empty: func() Object { return new(LocalityGroup) },
}

// defaultLocalityGroup is the name of the locality group that exists in every database. ALTER LOCALITY GROUP can
// change it.
const defaultLocalityGroup = syntax.DefaultName

// These are limits of locality groups. minSpill and maxSpill limit the option ssd_to_hdd_spill_timespan. Source:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#create_locality_group.
const (
	maxLocalityGroups = 16 // per database
	minSpill          = time.Hour
	maxSpill          = 365 * 24 * time.Hour
)

// LocalityGroups returns the locality groups that statements have created, and the default one if a statement has
// altered it, in order of creation.
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

// isIn reports whether the table, one of its columns or one of its indexes is in the locality group called group.
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
