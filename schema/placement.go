package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Placement says where rows of tables with a placement key are stored:
// https://cloud.google.com/spanner/docs/geo-partitioning. Crowfoot stores and shows it, and refuses rows that name no
// placement. It has no other effect, since there is only one place.
type Placement struct {
	Entity
	Options map[string]string `json:"options,omitempty"` // the options that are set, as text by name
}

var placements = &objectKind{
	name: "placement", noun: "Placement", apart: true, stage: beforeTables,
	empty: func() Object { return new(Placement) },
}

const (
	// DefaultPlacement exists without CREATE.
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

// HasPlacement reports whether a placement key may have the value name. The case of names matters.
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

// dropPlacement drops a placement, if no row names it.
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

// setPlacementKey makes a column of a new table the placement key if def says so.
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
