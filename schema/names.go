package schema

import (
	"fmt"
	"strings"
	"unique"

	"github.com/dgryski/go-farm"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// checkName checks a name by Spanner's rule: a letter, then letters,
// digits and underscores; kind is "Table", "Column", ...
func checkName(kind, name string) error {
	if len(name) == 0 || len(name) > MaxNameLength || !isLetter(name[0]) {
		return usererror.InvalidSchemaName(kind, name)
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && c != '_' && (c < '0' || c > '9') {
			return usererror.InvalidSchemaName(kind, name)
		}
	}
	return nil
}

// shared returns the one copy of a column's name that all tables share. It does not refer to the text around the name.
func shared(name string) string { return unique.Make(name).Value() }

// sameName reports whether SQL treats two names as the same.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// checkFree checks that no object has a name yet. In one schema, tables, indexes, constraints, change streams and most
// kinds of objects share a name space.
func (d *draft) checkFree(schema, name string) error {
	return d.checkFreeKey(key(schema, name), fullName(schema, name))
}

// checkFreeKey checks that a name is free. key is its key among the names of the catalog.
func (d *draft) checkFreeKey(key, name string) error {
	found, ok := d.names.Get(key)
	if !ok {
		return nil
	}
	existing := d.nameOf(found, name)
	if existing == name {
		return usererror.DuplicateName(name)
	}
	return usererror.NamesDifferInCase(name, existing)
}

// nameOf returns the full name of found as it was created. name may differ from it in case.
func (d *draft) nameOf(found named, name string) string {
	switch found.kind {
	case nameOfChangeStream:
		return d.ChangeStream(name).Name
	case nameOfObject:
		o, _ := d.objects.Get(found.table)
		return o.entity().FullName()
	}
	t := d.TableByID(found.table)
	switch found.kind {
	case nameOfTable:
		return t.FullName()
	case nameOfSynonym:
		return fullName(t.Schema, t.Synonym)
	case nameOfIndex:
		return t.Index(name).FullName()
	}
	for _, c := range t.Checks {
		if sameName(fullName(t.Schema, c.Name), name) {
			return fullName(t.Schema, c.Name)
		}
	}
	for _, fk := range t.ForeignKeys {
		if sameName(fullName(t.Schema, fk.Name), name) {
			return fullName(t.Schema, fk.Name)
		}
	}
	return name
}

// checkConstraintName checks the name of a constraint; kind is "Check Constraint" or "Foreign Key".
func (d *draft) checkConstraintName(kind string, t *Table, name string) error {
	if err := checkName(kind, name); err != nil {
		return err
	}
	for _, prefix := range []string{"PK_", "CK_IS_NOT_NULL_"} {
		if strings.HasPrefix(strings.ToUpper(name), prefix) {
			return usererror.ReservedConstraintName(kind, name, prefix)
		}
	}
	return d.checkFree(t.Schema, name)
}

// generateName generates a name in Spanner's form, base_<16 hex>_<n>. The hex part is a fingerprint of definition, and
// n makes the name unique.
func (d *draft) generateName(schema, base, definition string) string {
	for n := 1; ; n++ {
		name := cut(base, fmt.Sprintf("_%s_%d", fingerprint(definition), n))
		if d.checkFree(schema, name) == nil {
			return name
		}
	}
}

func fingerprint(definition string) string {
	return fmt.Sprintf("%016X", farm.Fingerprint64([]byte(definition)))
}

// cut joins base and suffix. It shortens base so that the result is not too long for a name.
func cut(base, suffix string) string {
	if len(base)+len(suffix) > MaxNameLength {
		base = strings.TrimRight(base[:MaxNameLength-len(suffix)], "_")
	}
	return base + suffix
}
