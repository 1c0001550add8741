package schema

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// LocalityGroup is where and how long data of tables and columns is kept on which storage. Crowfoot keeps and shows it; it has no effect, since
// there is one kind of storage. Source: https://cloud.google.com/spanner/docs/schema-and-data-model#locality-groups.
type LocalityGroup struct {
	Entity
	Options map[string]string `json:"options,omitempty"` // those that are set, as text by name
}

var localityGroups = &objectKind{
	name: "locality_group", noun: "Locality Group", apart: true, stage: beforeTables,
	empty: func() Object { return new(LocalityGroup) },
}

// defaultLocalityGroup is there without CREATE; it can be altered.
const defaultLocalityGroup = "default"

// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#create_locality_group.
const (
	maxLocalityGroups = 16 // per database
	minSpill          = time.Hour
	maxSpill          = 365 * 24 * time.Hour
)

// LocalityGroups are the locality groups that statements have made or altered, in order of creation.
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
	var list []string
	for _, name := range slices.Sorted(maps.Keys(g.Options)) {
		list = append(list, name+" = "+quoteString(g.Options[name]))
	}
	if list == nil {
		return []string{s}
	}
	return []string{s + set + "OPTIONS (" + strings.Join(list, ", ") + ")"}
}

func (d *draft) createLocalityGroup(s *ast.CreateLocalityGroup) error {
	name := strings.Clone(s.Name.Name)
	if sameName(name, defaultLocalityGroup) {
		return usererror.DuplicateName(name)
	}
	if err := d.checkNew(localityGroups, "", name); err != nil {
		return err
	}
	if len(d.LocalityGroups()) >= maxLocalityGroups {
		return usererror.TooManyObjects(localityGroups.noun, name, maxLocalityGroups)
	}
	g := &LocalityGroup{Entity: Entity{ID: d.newID(), Name: name}}
	if err := g.setOptions(s.Options); err != nil {
		return err
	}
	d.put(g)
	return nil
}

func (d *draft) alterLocalityGroup(s *ast.AlterLocalityGroup) error {
	old := objectByName[*LocalityGroup](d.Catalog, localityGroups, "", s.Name.Name)
	if old == nil {
		if !sameName(s.Name.Name, defaultLocalityGroup) {
			return localityGroups.missing("", s.Name.Name)
		}
		old = &LocalityGroup{Entity: Entity{ID: d.newID(), Name: defaultLocalityGroup}}
	}
	altered := *old
	if err := altered.setOptions(s.Options); err != nil {
		return err
	}
	d.put(&altered)
	return nil
}

func (d *draft) dropLocalityGroup(s *ast.DropLocalityGroup) error {
	if sameName(s.Name.Name, defaultLocalityGroup) {
		return usererror.DropDefaultLocalityGroup()
	}
	old := objectByName[*LocalityGroup](d.Catalog, localityGroups, "", s.Name.Name)
	if old == nil {
		return localityGroups.missing("", s.Name.Name)
	}
	d.drop(old)
	return nil
}

func (g *LocalityGroup) setOptions(options *ast.Options) error {
	if options == nil {
		return nil
	}
	g.Options = maps.Clone(g.Options)
	if g.Options == nil {
		g.Options = map[string]string{}
	}
	for _, r := range options.Records {
		option := strings.ToLower(r.Name.Name)
		wrong := usererror.BadObjectOption(option, localityGroups.noun, g.Name, "There is no such option")
		check := map[string]func(text string) string{"storage": checkStorage, "ssd_to_hdd_spill_timespan": checkSpill}[option]
		if check == nil {
			return wrong
		}
		if _, null := r.Value.(*ast.NullLiteral); null {
			delete(g.Options, option)
			continue
		}
		text, ok := optionText(r.Value, textOption)
		if !ok {
			return usererror.BadObjectOption(option, localityGroups.noun, g.Name, "The value must be a string")
		}
		if reason := check(text); reason != "" {
			return usererror.BadObjectOption(option, localityGroups.noun, g.Name, reason)
		}
		g.Options[option] = strings.Clone(text)
	}
	return nil
}

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
