package schema

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// ColumnarPolicy is the value of the option columnar_policy. It says whether Crowfoot maintains a columnar copy of a
// table or an index: https://cloud.google.com/spanner/docs/configure-columnar-engine. An index inherits the policy of
// its table, and a table inherits the policy of its database.
type ColumnarPolicy string

// These are the values of columnar_policy.
const (
	ColumnarInherited ColumnarPolicy = "" // NULL, or not set
	ColumnarEnabled   ColumnarPolicy = "enabled"
	ColumnarDisabled  ColumnarPolicy = "disabled"
)

const (
	columnarPolicy       = "columnar_policy"
	mustBeColumnarPolicy = "The value must be 'enabled', 'disabled' or NULL"
)

// orElse returns p, or the policy of the parent if p is ColumnarInherited.
func (p ColumnarPolicy) orElse(parent ColumnarPolicy) ColumnarPolicy {
	if p == ColumnarInherited {
		return parent
	}
	return p
}

// TableIsColumnar reports whether Crowfoot maintains a columnar copy of table t of c.
func (c *Catalog) TableIsColumnar(t *Table) bool { return c.columnarPolicyOf(t) == ColumnarEnabled }

// IndexIsColumnar reports whether Crowfoot maintains a columnar copy of index i of c.
func (c *Catalog) IndexIsColumnar(i *Index) bool {
	return i.ColumnarPolicy.orElse(c.columnarPolicyOf(i.Table)) == ColumnarEnabled
}

func (c *Catalog) columnarPolicyOf(t *Table) ColumnarPolicy {
	return t.ColumnarPolicy.orElse(ColumnarPolicy(c.Options[columnarPolicy]))
}

func checkColumnarPolicy(text string) string {
	if p := ColumnarPolicy(text); p != ColumnarEnabled && p != ColumnarDisabled {
		return mustBeColumnarPolicy
	}
	return ""
}

// set sets the policy to a value of the option columnar_policy. kind and name describe the object in errors.
func (p *ColumnarPolicy) set(kind, name string, value ast.Expr) error {
	if _, null := value.(*ast.NullLiteral); null {
		*p = ColumnarInherited
		return nil
	}
	text, ok := optionText(value, textOption)
	if !ok || checkColumnarPolicy(text) != "" {
		return usererror.BadObjectOption(columnarPolicy, kind, name, mustBeColumnarPolicy)
	}
	*p = ColumnarPolicy(strings.Clone(text))
	return nil
}
