package utility

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// NextSequenceValue is the name of the function that takes a value of a sequence.
const NextSequenceValue = "get_next_sequence_value"

// SequenceState is the name of the function that returns the counter of a sequence.
const SequenceState = "get_internal_sequence_state"

// Sequences has the functions of sequences and identity columns. Their argument is the full name of a sequence or
// column, as a STRING.
var Sequences = []fn.Record{
	{Name: NextSequenceValue, Doc: "The next value of a sequence.", Property: fn.Volatile, Overloads: []fn.Overload{fn.On("STRING -> INT64", fn.Strict(nextSequenceValue))}},
	{Name: SequenceState, Doc: "The counter of a sequence, before its bits are reversed.", Property: fn.Volatile, Overloads: []fn.Overload{fn.On("STRING -> INT64", fn.Strict(sequenceState))}},
	{Name: "get_table_column_identity_state", Doc: "The counter of an identity column, named table.column.", Property: fn.Volatile, Overloads: []fn.Overload{fn.On("STRING -> INT64", fn.Strict(identityState))}},
}

func nextSequenceValue(ctx *fn.Context, args []value.Value) (value.Value, error) {
	v, err := ctx.Sequences.Next(args[0].AsString())
	return value.OfInt64(v), err
}

func sequenceState(ctx *fn.Context, args []value.Value) (value.Value, error) {
	return counterValue(ctx.Sequences.State(args[0].AsString()))
}

func identityState(ctx *fn.Context, args []value.Value) (value.Value, error) {
	return counterValue(ctx.Sequences.IdentityState(args[0].AsString()))
}

func counterValue(counter int64, ok bool, err error) (value.Value, error) {
	if err != nil || !ok {
		return value.Null(value.Int64), err
	}
	return value.OfInt64(counter), nil
}
