package fn

import "github.com/crowfoot-db/crowfoot/value"

// NextSequenceValue is the name of the function that takes a value of a sequence.
const NextSequenceValue = "get_next_sequence_value"

// SequenceState is the name of the function that returns the counter of a sequence.
const SequenceState = "get_internal_sequence_state"

// sequenceFunctions take the full name of a sequence as a STRING.
var sequenceFunctions = []record{
	{name: NextSequenceValue, doc: "The next value of a sequence.", property: volatile, overloads: []overload{on("STRING -> INT64", strict(nextSequenceValue))}},
	{name: SequenceState, doc: "The counter of a sequence, before its bits are reversed.", property: volatile, overloads: []overload{on("STRING -> INT64", strict(sequenceState))}},
	{name: "get_table_column_identity_state", doc: "The counter of an identity column, named table.column.", property: volatile, overloads: []overload{on("STRING -> INT64", strict(identityState))}},
}

func nextSequenceValue(ctx *Context, args []value.Value) (value.Value, error) {
	v, err := ctx.Sequences.Next(args[0].AsString())
	return value.OfInt64(v), err
}

func sequenceState(ctx *Context, args []value.Value) (value.Value, error) {
	return counterValue(ctx.Sequences.State(args[0].AsString()))
}

func identityState(ctx *Context, args []value.Value) (value.Value, error) {
	return counterValue(ctx.Sequences.IdentityState(args[0].AsString()))
}

func counterValue(counter int64, ok bool, err error) (value.Value, error) {
	if err != nil || !ok {
		return value.Null(value.Int64), err
	}
	return value.OfInt64(counter), nil
}
