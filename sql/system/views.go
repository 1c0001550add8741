package system

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
)

func views(b *builder) {
	for _, v := range b.views() {
		b.add("", v.Schema, v.Name, v.SQL, v.Security())
	}
}

// views returns the views that a row of the system table can describe. If the query restricts TABLE_SCHEMA or
// TABLE_NAME, it returns only views with these names.
func (b *builder) views() []*schema.View {
	names, some := b.want["TABLE_NAME"]
	if !some {
		return slices.DeleteFunc(b.catalog.Views(), func(v *schema.View) bool { return !b.wantsValue("TABLE_SCHEMA", v.Schema) })
	}
	var list []*schema.View
	for _, s := range b.schemas("TABLE_SCHEMA") {
		for name := range names {
			if v := b.catalog.View(path(s, name)); v != nil && v.Schema == s && v.Name == name {
				list = append(list, v)
			}
		}
	}
	return list
}

// synonyms returns the tables that have a synonym which a row of the system table can describe. If the query restricts
// TABLE_SCHEMA or TABLE_NAME, it returns only tables whose synonyms have these names.
func (b *builder) synonyms() []*schema.Table {
	names, some := b.want["TABLE_NAME"]
	if !some {
		return slices.DeleteFunc(b.all("TABLE_SCHEMA"), func(t *schema.Table) bool { return t.Synonym == "" })
	}
	var list []*schema.Table
	for _, s := range b.schemas("TABLE_SCHEMA") {
		for name := range names {
			if t := b.catalog.TableOrSynonym(path(s, name)); t != nil && t.Schema == s && t.Synonym == name {
				list = append(list, t)
			}
		}
	}
	return list
}

func tableSynonyms(b *builder) {
	for _, t := range b.tables() {
		if t.Synonym != "" {
			b.add("", t.Schema, t.Name, "", t.Schema, t.Synonym, t.Synonym)
		}
	}
}
