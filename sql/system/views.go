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

// views are the views that rows may be about, as tables are the tables.
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
