package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// databaseOption is one option of ALTER DATABASE ... SET OPTIONS.
type databaseOption struct {
	typ string // the type of its values: textOption, numberOption or boolOption
	// check returns a message that says what is wrong with a value, or "". text is the value as Options stores it.
	check func(text string) string
}

// These are the types of options, as DDL writes them.
const textOption, numberOption, boolOption = "STRING(MAX)", "INT64", "BOOL"

var databaseOptions = map[string]databaseOption{
	"version_retention_period": {textOption, checkRetention},
	"default_time_zone":        {textOption, checkTimeZone},
	"default_leader":           {textOption, nil},
	"read_lease_regions":       {textOption, nil},
	columnarPolicy:             {textOption, checkColumnarPolicy},
	statisticsOption:           {textOption, nil},
	"optimizer_version":        {numberOption, checkOptimizerVersion},
	defaultSequenceKind:        {textOption, checkSequenceKind},
	"use_unenforced_foreign_key_for_query_optimization": {boolOption, nil},
}

// DefaultTimeZone is the time zone of a database that does not set default_time_zone.
const DefaultTimeZone = "America/Los_Angeles"

// TimeZone returns the name of the database's default time zone.
func (o Options) TimeZone() string {
	if zone := o["default_time_zone"]; zone != "" {
		return zone
	}
	return DefaultTimeZone
}

// VersionRetention returns how long old versions of rows can be read.
func (o Options) VersionRetention() time.Duration {
	d, ok := parseRetention(o["version_retention_period"])
	if !ok {
		return minRetentionHours * time.Hour
	}
	return d
}

// Type returns the type of an option's values as DDL writes it: STRING(MAX), INT64 or BOOL.
func (o Options) Type(name string) string { return databaseOptions[name].typ }

// SQL prints the value of an option as DDL does.
func (o Options) SQL(name string) string {
	if o.Type(name) == textOption {
		return quoteString(o[name])
	}
	return o[name]
}

// alterDatabase sets options of the database. It accepts any database name in the statement, because the statement
// may come from the DDL of another database.
func (d *draft) alterDatabase(s *ast.AlterDatabase) error {
	if d.Database == "" {
		d.Database = s.Name.Name
	}
	d.Options = maps.Clone(d.Options)
	if d.Options == nil {
		d.Options = Options{}
	}
	for _, r := range s.Options.Records {
		name := strings.ToLower(r.Name.Name)
		option, ok := databaseOptions[name]
		if !ok {
			return usererror.BadDatabaseOption(r.Name.Name, "There is no such option")
		}
		text, err := option.value(name, r.Value)
		if err != nil {
			return err
		}
		if err := d.setOption(name, text); err != nil {
			return err
		}
	}
	return nil
}

// value returns the value of an option as text, as Options stores it; "" for NULL.
func (o databaseOption) value(name string, e ast.Expr) (string, error) {
	if _, ok := e.(*ast.NullLiteral); ok {
		return "", nil
	}
	text, ok := optionText(e, o.typ)
	if !ok {
		return "", usererror.BadDatabaseOptionValue(name, "The value is of the wrong type")
	}
	if o.check != nil {
		if wrong := o.check(text); wrong != "" {
			return "", usererror.BadDatabaseOptionValue(name, wrong)
		}
	}
	return text, nil
}

// setOption sets the value of an option. If text is "", setOption removes the option, which then has its default.
func (d *draft) setOption(name, text string) error {
	switch {
	case name == "default_time_zone" && d.tables.Len() > 0:
		return usererror.BadDatabaseOption(name, "It can only be changed while the database has no tables")
	case text != "":
		d.Options[name] = text
	case name == defaultSequenceKind && d.Options[name] != "":
		return usererror.BadDatabaseOption(name, "It cannot be unset once it is set")
	default:
		delete(d.Options, name)
	}
	return nil
}

// optionText returns the value of a literal as text, in the form in which Options stores it. It returns false unless
// the literal has the type typ.
func optionText(e ast.Expr, typ string) (string, bool) {
	switch v := e.(type) {
	case *ast.StringLiteral:
		return v.Value, typ == textOption
	case *ast.IntLiteral:
		n, err := parseInt(v)
		return strconv.FormatInt(n, 10), err == nil && typ == numberOption
	case *ast.BoolLiteral:
		return strconv.FormatBool(v.Value), typ == boolOption
	}
	return "", false
}

func checkRetention(text string) string {
	d, ok := parseRetention(text)
	if !ok || d < minRetentionHours*time.Hour || d > maxRetentionHours*time.Hour {
		return "The value must be a duration between 1h and 7d, such as '36h'"
	}
	return ""
}

// parseRetention parses a duration that consists of a number and one of the units d, h, m and s. It returns false if
// text is no such duration.
func parseRetention(text string) (time.Duration, bool) {
	if len(text) < 2 {
		return 0, false
	}
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	unit, ok := units[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 31)
	d := time.Duration(n) * unit
	return d, ok && err == nil && d/unit == time.Duration(n)
}

func checkTimeZone(text string) string {
	if _, err := time.LoadLocation(text); err != nil || text == "" || text == "Local" {
		return "The value must be the name of a time zone, such as 'America/Los_Angeles'"
	}
	return ""
}

// IsOptimizerVersion reports whether text is the number of an optimizer version, from 1 to NewestOptimizer.
func IsOptimizerVersion(text string) bool {
	n, err := strconv.ParseUint(text, 10, 31)
	return err == nil && n >= 1 && n <= NewestOptimizer
}

func checkOptimizerVersion(text string) string {
	if !IsOptimizerVersion(text) {
		return "The value must be between 1 and " + strconv.Itoa(NewestOptimizer)
	}
	return ""
}

// defaultSequenceKind is the name of a database option. The option says which kind a sequence or an identity column has
// if its statement does not name a kind.
const defaultSequenceKind = "default_sequence_kind"

func checkSequenceKind(text string) string {
	if text != SequenceKind {
		return "The value must be '" + SequenceKind + "'"
	}
	return ""
}

// textOptions describes the options of one kind of objects. All of them have string values. It maps the name of each
// option to a function that checks a value: the function returns a message about what is wrong, or "".
type textOptions map[string]func(text string) string

// set returns the options that an object has after a statement. have holds the options that it has before the
// statement. options is the OPTIONS clause of the statement, or nil. In the clause, the value NULL removes an option.
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

// setStorageOptions sets the OPTIONS of a table or an index from a clause, which may be nil. kind and name describe
// the table or index in errors.
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

// groupOption returns the locality group that a value of the option locality_group names; "" for NULL. kind and name
// describe, in errors, the table, column or index that has the option.
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

// optionsBlock prints an OPTIONS clause with one option on each line; "" if lines is empty.
func optionsBlock(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "OPTIONS (\n" + strings.Join(lines, ",\n") + "\n  )"
}
