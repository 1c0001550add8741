package watch

import (
	"slices"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// recordFormat holds the positions of the fields in the values of the column ChangeRecord. recordFormat.of is the type
// of that column. The position of a missing field is -1.
type recordFormat struct {
	of                        *spannerpb.Type
	data, heartbeat, children int
	dataFields                dataFields
	heartbeatTime             int
	childrenFields            childrenFields
}

// dataFields are the positions of the fields of a data_change_record, of its column_types and of its mods.
type dataFields struct {
	commit, sequence, transaction, table, columns, mods, kind, records, tag, system int
	columnName, columnType, columnKey                                               int
	keys, newValues, oldValues                                                      int
}

// childrenFields are the positions of the fields of a child_partitions_record and its child_partitions.
type childrenFields struct{ start, partitions, token, parents int }

func newRecordFormat(t *spannerpb.Type) *recordFormat {
	record := structOf(t)
	f := &recordFormat{of: t, data: record.index("data_change_record"), heartbeat: record.index("heartbeat_record"), children: record.index("child_partitions_record")}
	data := record.array("data_change_record")
	column, mod := data.array("column_types"), data.array("mods")
	f.dataFields = dataFields{
		commit: data.index("commit_timestamp"), sequence: data.index("record_sequence"), transaction: data.index("server_transaction_id"),
		table: data.index("table_name"), columns: data.index("column_types"), mods: data.index("mods"), kind: data.index("mod_type"),
		records: data.index("number_of_records_in_transaction"), tag: data.index("transaction_tag"), system: data.index("is_system_transaction"),
		columnName: column.index("name"), columnType: column.index("type"), columnKey: column.index("is_primary_key"),
		keys: mod.index("keys"), newValues: mod.index("new_values"), oldValues: mod.index("old_values"),
	}
	f.heartbeatTime = record.array("heartbeat_record").index("timestamp")
	children := record.array("child_partitions_record")
	partition := children.array("child_partitions")
	f.childrenFields = childrenFields{
		start: children.index("start_timestamp"), partitions: children.index("child_partitions"),
		token: partition.index("token"), parents: partition.index("parent_partition_tokens"),
	}
	return f
}

// structFields is the list of fields of a STRUCT type.
type structFields []*spannerpb.StructType_Field

// structOf returns the fields of the STRUCT in the type ARRAY<STRUCT>.
func structOf(t *spannerpb.Type) structFields {
	return t.GetArrayElementType().GetStructType().GetFields()
}

func (s structFields) index(name string) int {
	return slices.IndexFunc(s, func(f *spannerpb.StructType_Field) bool { return f.GetName() == name })
}

// array returns the fields of the STRUCT in the field with this name, whose type is ARRAY<STRUCT>.
func (s structFields) array(name string) structFields {
	if i := s.index(name); i >= 0 {
		return structOf(s[i].GetType())
	}
	return nil
}

// field returns the value of field i. If there is no such field, it returns nil. Getters such as GetStringValue return
// empty values for nil.
func field(values []*structpb.Value, i int) *structpb.Value {
	if i < 0 || i >= len(values) {
		return nil
	}
	return values[i]
}
