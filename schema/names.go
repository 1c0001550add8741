package schema

import (
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/dgryski/go-farm"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// checkName checks a name by Spanner's rule: a letter, then letters, digits and underscores. kind is "Table",
// "Column" and so on, for errors.
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

// shared returns a copy of name. All columns with the same name share one copy. The copy does not keep in memory the
// statement from whose text name was cut.
func shared(name string) string { return unique.Make(name).Value() }

// sameName reports whether SQL treats two names as equal: it ignores case.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// checkFree returns an error if an object of the schema has the name already. Within a schema, tables, synonyms,
// indexes, constraints, change streams and most kinds of objects share one name space.
func (d *draft) checkFree(schema, name string) error {
	return d.checkFreeKey(key(schema, name), fullName(schema, name))
}

// checkFreeKey returns an error if an object already has the given full name. key is the key of this name in the
// catalog's map of names.
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

// nameOf returns the full name of an object, in the upper and lower case in which the object was created. found is the
// object's entry in the catalog's map of names. name is the full name as the caller spells it, maybe in another case.
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

// checkConstraintName checks the name of a new constraint of t. kind is "Check Constraint" or "Foreign Key".
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

// generateName generates a name in Spanner's form: base_<16 hexadecimal digits>_<n>. The digits are a fingerprint of
// definition. n is the lowest number that makes the name unique.
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

// cut joins base and suffix. It shortens base if the result would exceed MaxNameLength.
func cut(base, suffix string) string {
	if len(base)+len(suffix) > MaxNameLength {
		base = strings.TrimRight(base[:MaxNameLength-len(suffix)], "_")
	}
	return base + suffix
}

// reservedSchemas are names that a named schema must not have.
var reservedSchemas = []string{"INFORMATION_SCHEMA", spannerSys, "DEFAULT", "PUBLIC"}

func (d *draft) createSchema(s *ast.CreateSchema) error {
	name := s.Name.Name
	if err := checkName("Schema", name); err != nil {
		return err
	}
	if slices.Contains(reservedSchemas, strings.ToUpper(name)) {
		return usererror.InvalidSchemaName("Schema", name)
	}
	for _, have := range d.Schemas {
		switch {
		case sameName(have, name) && s.IfNotExists:
			return d.nothing()
		case have == name:
			return usererror.DuplicateName(name)
		case sameName(have, name):
			return usererror.NamesDifferInCase(name, have)
		}
	}
	d.Schemas = append(slices.Clip(d.Schemas), name)
	return nil
}

func (d *draft) dropSchema(s *ast.DropSchema) error {
	name, err := d.findSchema(s.Name.Name)
	if err != nil {
		if s.IfExists {
			return d.nothing()
		}
		return err
	}
	if contents := d.contents(name); contents != "" {
		return usererror.DropSchemaInUse(name, contents)
	}
	d.Schemas = slices.DeleteFunc(slices.Clone(d.Schemas), func(s string) bool { return s == name })
	return nil
}

// contents lists the tables, indexes and objects of a named schema, one line for each kind; "" if the schema is
// empty.
func (c *Catalog) contents(schema string) string {
	var kinds []string
	names := map[string][]string{}
	add := func(kind, in, name string) {
		if in != schema {
			return
		}
		if names[kind] == nil {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], name)
	}
	for t := range c.Tables() {
		add("tables", t.Schema, t.FullName())
	}
	for o := range objectsOf[Object](c) {
		e := o.entity()
		add(strings.ToLower(o.kind().noun)+"s", e.Schema, e.FullName())
	}
	for t := range c.Tables() {
		for _, i := range t.Indexes {
			add("indexes", i.Schema, i.FullName())
		}
	}
	var list strings.Builder
	for _, kind := range kinds {
		list.WriteString("\nDependent " + kind + ": " + strings.Join(names[kind], ", "))
	}
	return list.String()
}

// findSchema finds a schema, ignoring case. It returns the schema's name as CREATE SCHEMA wrote it. The schema ""
// always exists.
func (d *draft) findSchema(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	for _, have := range d.Schemas {
		if sameName(have, name) {
			return have, nil
		}
	}
	return "", usererror.SchemaObjectNotFound("Schema", name)
}
