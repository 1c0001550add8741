package analyze

import (
	"errors"
	"strings"

	"github.com/goccy/go-googlesql"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// readPrefix is the beginning of the name of the table-valued functions that read change streams.
const readPrefix = schema.ReadFunctionPrefix

// readArguments are the arguments of a function that reads a change stream. GoogleSQL treats all of them as optional.
// changeStreamRead gives missing arguments the value NULL, and a later check refuses NULL for the required ones.
var readArguments = []value.Field{
	{Name: "start_timestamp", Type: value.TimestampType},
	{Name: "end_timestamp", Type: value.TimestampType},
	{Name: "partition_token", Type: value.StringType},
	{Name: "heartbeat_milliseconds", Type: value.Int64Type},
	{Name: "read_options", Type: value.ArrayOf(value.StringType)},
}

// changeRecord is the only column that a function that reads a change stream returns:
// https://cloud.google.com/spanner/docs/change-streams/details#record-format.
var changeRecord = value.Field{Name: "ChangeRecord", Type: structs(
	value.Field{Name: "data_change_record", Type: structs(
		value.Field{Name: "commit_timestamp", Type: value.TimestampType},
		value.Field{Name: "record_sequence", Type: value.StringType},
		value.Field{Name: "server_transaction_id", Type: value.StringType},
		value.Field{Name: "is_last_record_in_transaction_in_partition", Type: value.BoolType},
		value.Field{Name: "table_name", Type: value.StringType},
		value.Field{Name: "column_types", Type: structs(
			value.Field{Name: "name", Type: value.StringType},
			value.Field{Name: "type", Type: value.JSONType},
			value.Field{Name: "is_primary_key", Type: value.BoolType},
			value.Field{Name: "ordinal_position", Type: value.Int64Type},
		)},
		value.Field{Name: "mods", Type: structs(
			value.Field{Name: "keys", Type: value.JSONType},
			value.Field{Name: "new_values", Type: value.JSONType},
			value.Field{Name: "old_values", Type: value.JSONType},
		)},
		value.Field{Name: "mod_type", Type: value.StringType},
		value.Field{Name: "value_capture_type", Type: value.StringType},
		value.Field{Name: "number_of_records_in_transaction", Type: value.Int64Type},
		value.Field{Name: "number_of_partitions_in_transaction", Type: value.Int64Type},
		value.Field{Name: "transaction_tag", Type: value.StringType},
		value.Field{Name: "is_system_transaction", Type: value.BoolType},
	)},
	value.Field{Name: "heartbeat_record", Type: structs(
		value.Field{Name: "timestamp", Type: value.TimestampType},
	)},
	value.Field{Name: "child_partitions_record", Type: structs(
		value.Field{Name: "start_timestamp", Type: value.TimestampType},
		value.Field{Name: "record_sequence", Type: value.StringType},
		value.Field{Name: "child_partitions", Type: structs(
			value.Field{Name: "token", Type: value.StringType},
			value.Field{Name: "parent_partition_tokens", Type: value.ArrayOf(value.StringType)},
		)},
	)},
)}

// structs returns the type of an array of structs with these fields.
func structs(fields ...value.Field) *value.Type { return value.ArrayOf(value.StructOf(fields...)) }

// streamOf returns the change stream that the function called name reads; nil if name is no such function.
func (a *Analyzer) streamOf(name string) *schema.ChangeStream {
	if len(name) <= len(readPrefix) || !strings.EqualFold(name[:len(readPrefix)], readPrefix) {
		return nil
	}
	return a.catalog.ChangeStream(name[len(readPrefix):])
}

// addStreams adds the read functions of the given change streams to l, except those that l already has.
func (l *library) addStreams(streams []*schema.ChangeStream) {
	for _, s := range streams {
		if l.reads[s] {
			continue
		}
		l.reads[s] = true
		l.addRead(s)
		l.engine.rest()
	}
}

// addRead adds the function that reads a change stream. GoogleSQL's Go methods cannot give an argument a name, so
// addRead describes the function in a protobuf message, which GoogleSQL parses.
func (l *library) addRead(s *schema.ChangeStream) {
	message := own(googlesql.NewTableValuedFunctionProto())
	defer free(l.engine, freeFunctionProto, message)
	if !get(message.ParseFromString(string(readFunction(s)))) {
		panic(failure{errors.New("the library cannot parse the function of a change stream")})
	}
	types := own(googlesql.NewTypeDeserializer2(l.types, nil))
	defer free(l.engine, freeDeserializer, types)
	do(l.root.AddOwnedTableValuedFunction(own(googlesql.NewTableValuedFunctionDeserialize(message, types))))
}

// Field numbers and enum values of the protobuf messages in which readFunction describes a function to GoogleSQL.
const (
	functionPath, functionSignature, functionType = 1, 2, 3 // fields of TableValuedFunctionProto
	fixedOutputSchema                             = 1

	signatureArgument, signatureResult, signatureContext = 1, 2, 3 // fields of FunctionSignatureProto

	// Fields of FunctionArgumentTypeProto, and values of its field argumentKind.
	argumentKind, argumentType, argumentOptions, argumentOccurrences = 1, 2, 3, 4
	kindFixed, kindRelation                                          = 0, 9

	// Fields of FunctionArgumentTypeOptionsProto, and values of its fields optionCardinality and optionNaming.
	optionCardinality, optionRelation, optionName, optionNaming = 1, 10, 11, 25
	optional, positionalOrNamed                                 = 2, 2

	relationColumn, columnName, columnType = 1, 1, 2 // fields of TVFRelationProto and of its columns

	// Fields of TypeProto and of the messages in it.
	typeKind, typeArray, typeStruct   = 1, 2, 3
	arrayElement                      = 1
	structField, fieldName, fieldType = 1, 1, 2
)

// typeKinds holds the numbers of SQL types in GoogleSQL's enumeration TypeKind.
var typeKinds = map[value.Kind]uint64{
	value.Int64: 2, value.Bool: 5, value.String: 8, value.Array: 16, value.Struct: 17, value.Timestamp: 19, value.JSON: 26,
}

// readFunction returns the protobuf message that describes the function which reads a change stream.
func readFunction(s *schema.ChangeStream) []byte {
	var signature []byte
	for _, arg := range readArguments {
		options := appendNumber(nil, optionCardinality, optional)
		options = appendNumber(appendMessage(options, optionName, []byte(arg.Name)), optionNaming, positionalOrNamed)
		signature = appendMessage(signature, signatureArgument, argumentMessage(kindFixed, typeMessage(arg.Type), options))
	}
	column := appendMessage(appendMessage(nil, columnName, []byte(changeRecord.Name)), columnType, typeMessage(changeRecord.Type))
	relation := appendMessage(nil, optionRelation, appendMessage(nil, relationColumn, column))
	signature = appendMessage(signature, signatureResult, argumentMessage(kindRelation, nil, relation))
	signature = appendNumber(signature, signatureContext, 0)

	function := appendMessage(nil, functionPath, []byte(readPrefix+s.Name))
	return appendNumber(appendMessage(function, functionSignature, signature), functionType, fixedOutputSchema)
}

func argumentMessage(kind uint64, typ, options []byte) []byte {
	m := appendNumber(nil, argumentKind, kind)
	if typ != nil {
		m = appendMessage(m, argumentType, typ)
	}
	return appendNumber(appendMessage(m, argumentOptions, options), argumentOccurrences, 1)
}

func typeMessage(t *value.Type) []byte {
	m := appendNumber(nil, typeKind, typeKinds[t.Kind])
	switch t.Kind {
	case value.Array:
		m = appendMessage(m, typeArray, appendMessage(nil, arrayElement, typeMessage(t.Elem)))
	case value.Struct:
		var fields []byte
		for _, f := range t.Fields {
			field := appendMessage(appendMessage(nil, fieldName, []byte(f.Name)), fieldType, typeMessage(f.Type))
			fields = appendMessage(fields, structField, field)
		}
		m = appendMessage(m, typeStruct, fields)
	}
	return m
}

func appendMessage(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// changeStreamRead returns the tree of a query that reads a change stream; nil for any other query. It refuses a
// query that combines the read of a change stream with other work.
func (w *walker) changeStreamRead(n *googlesql.ResolvedQueryStmt) *tree.ChangeStreamRead {
	scan := get(n.Query())
	if p, ok := scan.(*googlesql.ResolvedProjectScan); ok && get(p.ExprListSize()) == 0 {
		scan = get(p.InputScan())
	}
	call, ok := scan.(*googlesql.ResolvedTVFScan)
	if !ok {
		return nil
	}
	name := functionName(call)
	w.hints(get(n.HintList()), statementHints)
	w.hints(get(call.HintList()), noHints)
	output := w.output(listed(w.lib.engine, n.OutputColumnList, n.OutputColumnListSize, n.OutputColumnList2))
	if len(output) != 1 || get(n.IsValueTable()) || locks(w.sql) {
		refuse(usererror.ChangeStreamCombined(name))
	}
	read := &tree.ChangeStreamRead{Stream: w.catalog.ChangeStream(name[len(readPrefix):]), Output: output[0]}
	given := get(call.ArgumentList())
	for i, want := range readArguments {
		if i >= len(given) {
			read.Args = append(read.Args, &tree.Literal{T: want.Type, Value: value.Null(want.Type.Kind)})
			continue
		}
		arg := w.expr(get(given[i].Expr()))
		if !isGiven(arg) {
			refuse(usererror.ChangeStreamArgument(name, i+1))
		}
		read.Args = append(read.Args, arg)
	}
	return read
}

// locks reports whether a text has FOR UPDATE. It searches the text, because GoogleSQL does not report FOR
// UPDATE for a table-valued function.
func locks(sql string) bool {
	s := scanner{sql: sql}
	for last := ""; s.next(); last = s.token {
		if strings.EqualFold(last, "FOR") && strings.EqualFold(s.token, "UPDATE") {
			return true
		}
	}
	return false
}

// isGiven reports whether an argument is a literal or a parameter. The cast of a literal also counts, because a
// timestamp literal in the database's time zone becomes such a cast.
func isGiven(e tree.Expr) bool {
	if c, ok := e.(*tree.Cast); ok {
		_, ok := c.Arg.(*tree.Literal)
		return ok && c.Format == nil && c.Zone == nil
	}
	switch e.(type) {
	case *tree.Literal, *tree.Param:
		return true
	}
	return false
}

func functionName(n *googlesql.ResolvedTVFScan) string { return get(get(n.Tvf()).Name()) }
