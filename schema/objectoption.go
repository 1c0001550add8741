package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// textOptions are the options of a kind of objects, all with string values. Each has a function that returns what is
// wrong with a value, or "".
type textOptions map[string]func(text string) string

// set returns the options of an object after an OPTIONS clause, which may be nil. have are the options before. NULL
// removes an option.
func (known textOptions) set(kind *objectKind, name string, have map[string]string, options *ast.Options) (map[string]string, error) {
	if options == nil {
		return have, nil
	}
	now := map[string]string{}
	maps.Copy(now, have)
	for _, r := range options.Records {
		option := strings.ToLower(r.Name.Name)
		check := known[option]
		if check == nil {
			return nil, usererror.BadObjectOption(option, kind.noun, name, "There is no such option")
		}
		if _, null := r.Value.(*ast.NullLiteral); null {
			delete(now, option)
			continue
		}
		text, ok := optionText(r.Value, textOption)
		if !ok {
			return nil, usererror.BadObjectOption(option, kind.noun, name, "The value must be a string")
		}
		if reason := check(text); reason != "" {
			return nil, usererror.BadObjectOption(option, kind.noun, name, reason)
		}
		now[option] = strings.Clone(text)
	}
	return now, nil
}

// textOptionsSQL prints the OPTIONS clause of an object; "" if no option is set.
func textOptionsSQL(options map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		list = append(list, name+" = "+quoteString(options[name]))
	}
	if list == nil {
		return ""
	}
	return "OPTIONS (" + strings.Join(list, ", ") + ")"
}

const localityGroup = "locality_group"

// setStorageOptions sets the OPTIONS of a table or an index from a clause, which may be nil. kind and name describe it
// in errors.
func (d *draft) setStorageOptions(kind, name string, options *ast.Options, policy *ColumnarPolicy, group *string) (err error) {
	if options == nil {
		return nil
	}
	for _, r := range options.Records {
		switch option := strings.ToLower(r.Name.Name); option {
		case columnarPolicy:
			err = policy.set(kind, name, r.Value)
		case localityGroup:
			*group, err = d.groupOption(kind, name, r.Value)
		case "fulltext_dictionary_table", "fulltext_dictionary_staleness":
			err = usererror.DDLUnimplemented(kind + " option " + option)
		default:
			err = usererror.BadObjectOption(option, kind, name, "There is no such option")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groupOption returns the locality group that a value of the option locality_group names; "" for NULL.
func (d *draft) groupOption(kind, name string, value ast.Expr) (string, error) {
	if _, null := value.(*ast.NullLiteral); null {
		return "", nil
	}
	text, ok := optionText(value, textOption)
	if !ok {
		return "", usererror.BadObjectOption(localityGroup, kind, name, "The value must be the name of a locality group, or NULL")
	}
	if sameName(text, defaultLocalityGroup) {
		return defaultLocalityGroup, nil
	}
	g := objectByName[*LocalityGroup](d.Catalog, localityGroups, "", text)
	if g == nil {
		return "", localityGroups.missing("", text)
	}
	return g.Name, nil
}

// storageOptionsSQL prints the OPTIONS clause of a table or an index; "" if no option is set.
func storageOptionsSQL(policy ColumnarPolicy, group string) string {
	var list []string
	if policy != ColumnarInherited {
		list = append(list, "    "+columnarPolicy+" = "+quoteString(string(policy)))
	}
	if group != "" {
		list = append(list, "    "+localityGroup+" = "+quoteString(group))
	}
	return optionsBlock(list)
}

// optionsBlock prints an OPTIONS clause with one option per line; "" if there are none.
func optionsBlock(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "OPTIONS (\n" + strings.Join(lines, ",\n") + "\n  )"
}
