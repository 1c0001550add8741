package watch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// changeRecords are the records of one row that a change stream returns:
// https://cloud.google.com/spanner/docs/change-streams/details#record-format.
type changeRecords struct {
	data       []*dataRecord
	heartbeats []time.Time
	children   []childPartition
}

// dataRecord is a data_change_record.
type dataRecord struct {
	commit      time.Time
	sequence    string
	transaction string
	table       TableID
	changes     []Change
	records     int // of the transaction, in all partitions
	tag         string
	system      bool
	partition   *streamPartition // that it was read from
}

// childPartition is a partition that a child_partitions_record names.
type childPartition struct {
	token   string
	start   time.Time
	parents []string
}

// recordDecoder decodes rows. It keeps the types of columns, which come as JSON with every record.
type recordDecoder struct {
	database string
	types    map[string]*spannerpb.Type
}

func newRecordDecoder(database string) *recordDecoder {
	return &recordDecoder{database: database, types: map[string]*spannerpb.Type{}}
}

func (d *recordDecoder) decode(row *spanner.Row) (*changeRecords, error) {
	var v spanner.GenericColumnValue
	if err := row.Column(0, &v); err != nil {
		return nil, err
	}
	records := new(changeRecords)
	fields := v.Type.GetArrayElementType().GetStructType().GetFields()
	for _, list := range v.Value.GetListValue().GetValues() {
		for i, kind := range list.GetListValue().GetValues() {
			of := fields[i].Type.GetArrayElementType().GetStructType().GetFields()
			for _, record := range kind.GetListValue().GetValues() {
				s := structOf(of, record)
				var err error
				switch fields[i].Name {
				case "data_change_record":
					err = d.addData(records, s)
				case "heartbeat_record":
					records.heartbeats = append(records.heartbeats, s.time("timestamp"))
				case "child_partitions_record":
					records.addChildren(s)
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return records, nil
}

func (r *changeRecords) addChildren(s structValue) {
	for _, v := range s.structs("child_partitions") {
		c := childPartition{token: v.text("token"), start: s.time("start_timestamp")}
		for _, p := range v.list("parent_partition_tokens") {
			c.parents = append(c.parents, p.GetStringValue())
		}
		r.children = append(r.children, c)
	}
}

var kindsByName = map[string]Kind{"INSERT": Insert, "UPDATE": Update, "DELETE": Delete}

func (d *recordDecoder) addData(to *changeRecords, s structValue) error {
	r := &dataRecord{
		commit: s.time("commit_timestamp"), sequence: s.text("record_sequence"), transaction: s.text("server_transaction_id"),
		table: named(d.database, s.text("table_name")), tag: s.text("transaction_tag"), system: s.value("is_system_transaction").GetBoolValue(),
	}
	var err error
	if r.records, err = strconv.Atoi(s.text("number_of_records_in_transaction")); err != nil {
		return fmt.Errorf("number_of_records_in_transaction: %w", err)
	}
	kind, ok := kindsByName[s.text("mod_type")]
	if !ok {
		return fmt.Errorf("mod_type %q is not known", s.text("mod_type"))
	}
	keys, others, err := d.columns(s.structs("column_types"))
	if err != nil {
		return err
	}
	for _, mod := range s.structs("mods") {
		c := Change{Table: r.table, Kind: kind, CommitTimestamp: r.commit, RecordSequence: r.sequence}
		for _, part := range []struct {
			to      *Row
			name    string
			columns []Column
		}{{&c.Key, "keys", keys}, {&c.Values, "new_values", others}, {&c.OldValues, "old_values", others}} {
			if *part.to, err = rowOf(mod.text(part.name), part.columns); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
		r.changes = append(r.changes, c)
	}
	to.data = append(to.data, r)
	return nil
}

// columns are those of column_types: the key's, and the others.
func (d *recordDecoder) columns(list []structValue) (keys, others []Column, err error) {
	for _, s := range list {
		text := s.text("type")
		t := d.types[text]
		if t == nil {
			t = new(spannerpb.Type)
			if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), t); err != nil {
				return nil, nil, fmt.Errorf("type %s: %w", text, err)
			}
			d.types[text] = t
		}
		c := Column{Name: s.text("name"), Type: t}
		if s.value("is_primary_key").GetBoolValue() {
			keys = append(keys, c)
		} else {
			others = append(others, c)
		}
	}
	return keys, others, nil
}

// rowOf is what an object of JSON has of columns.
func rowOf(text string, columns []Column) (row Row, err error) {
	if text == "" || text == "{}" {
		return Row{}, nil
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return Row{}, err
	}
	if len(object) == len(columns) {
		row.Columns = columns // shared
	}
	for _, c := range columns {
		v, ok := object[c.Name]
		if !ok {
			continue
		}
		if len(object) != len(columns) {
			row.Columns = append(row.Columns, c)
		}
		coded, err := structpb.NewValue(v)
		if err != nil {
			return Row{}, err
		}
		row.Values = append(row.Values, coded)
	}
	return row, nil
}

// structValue is a STRUCT with the names of its fields.
type structValue struct {
	fields []*spannerpb.StructType_Field
	values []*structpb.Value
}

func structOf(fields []*spannerpb.StructType_Field, v *structpb.Value) structValue {
	return structValue{fields, v.GetListValue().GetValues()}
}

func (s structValue) index(name string) int {
	for i, f := range s.fields {
		if f.Name == name && i < len(s.values) {
			return i
		}
	}
	return -1
}

// value is the value of a field; nil if there is none, which is as an empty value of any kind.
func (s structValue) value(name string) *structpb.Value {
	if i := s.index(name); i >= 0 {
		return s.values[i]
	}
	return nil
}

func (s structValue) text(name string) string { return s.value(name).GetStringValue() }

func (s structValue) list(name string) []*structpb.Value {
	return s.value(name).GetListValue().GetValues()
}

func (s structValue) structs(name string) (list []structValue) {
	i := s.index(name)
	if i < 0 {
		return nil
	}
	fields := s.fields[i].Type.GetArrayElementType().GetStructType().GetFields()
	for _, v := range s.values[i].GetListValue().GetValues() {
		list = append(list, structOf(fields, v))
	}
	return list
}

// time is a TIMESTAMP; zero if it is NULL.
func (s structValue) time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s.text(name))
	return t
}
