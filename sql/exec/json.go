package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// getJSONField compiles json.name, which means json['name'].
func (c *compiler) getJSONField(e *plan.GetJSONField) (eval, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	f, err := library.Lookup(&tree.Function{Name: "$subscript", Args: []*value.Type{value.JSONType, value.StringType}, Type: value.JSONType})
	if err != nil {
		return nil, err
	}
	name := value.OfString(e.Name)
	constant := func(*run, []value.Value) (value.Value, error) { return name, nil }
	return c.strict(f, []eval{arg, constant}), nil
}
