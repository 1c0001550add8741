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

// views returns all views about which the query that reads b.table may select rows. If the query asks only for
// certain values of TABLE_SCHEMA or TABLE_NAME (b.want), views returns only views with these names.
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

// synonyms returns all tables with a synonym for which the query may select a row: the row has the synonym in the
// column TABLE_NAME. If the query asks only for certain values of TABLE_SCHEMA or TABLE_NAME (b.want), synonyms
// returns only tables whose synonyms have these names.
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
