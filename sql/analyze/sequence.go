package analyze

import (
	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// sequenceFunctions are the functions that have one argument, SEQUENCE s.
var sequenceFunctions = []string{"get_next_sequence_value", "get_internal_sequence_state"}

func (l *library) addSequenceFunction(name string) {
	result := own(googlesql.NewFunctionArgumentType3(l.typeOf(l.types, value.Int64Type), 1))
	arg := own(googlesql.NewFunctionArgumentTypeAnySequence())
	// NewFunctionSignature3 copies result and arg, so that both can be freed.
	signature := own(googlesql.NewFunctionSignature3(result, []*googlesql.FunctionArgumentType{arg}, 0))
	freeArgument(result)
	freeArgument(arg)
	do(l.root.AddOwnedFunction(own(googlesql.NewFunction2([]string{name}, spannerGroup, googlesql.FunctionEnums_ModeScalar, []*googlesql.FunctionSignature{signature}))))
	freeSignature(signature)
}

// addSequences adds the sequences that the library does not have yet.
func (l *library) addSequences(list []*schema.Sequence) {
	for _, s := range list {
		if l.takes[s] {
			continue
		}
		l.takes[s] = true
		l.addBuiltIns()
		sequence := own(googlesql.NewSimpleSequence(s.FullName()))
		l.ownSequences = append(l.ownSequences, sequence)
		do(l.in(s.Schema).AddSequence2(s.Name, sequence))
		l.engine.rest()
	}
}

// sequence translates an argument SEQUENCE s into a STRING, the full name of s.
func (w *walker) sequence(n *googlesql.ResolvedSequence) tree.Expr {
	s := w.catalog.Sequence(get(get(n.Sequence()).FullName()))
	w.meet(s)
	w.definition.use(schema.Use{ID: s.ID})
	return &tree.Literal{T: value.StringType, Value: value.OfString(s.FullName())}
}
