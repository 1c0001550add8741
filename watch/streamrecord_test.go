package watch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestRecords checks that recordDecoder decodes random records, some of them invalid, in the same way as plainDecoder.
func TestRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	d, plain := newRecordDecoder("d"), newPlainDecoder("d")
	of := recordType(t)
	refused := 0
	for range 3000 {
		v := randomRecords(t, r)
		row, err := spanner.NewRow([]string{"ChangeRecord"}, []any{spanner.GenericColumnValue{Type: of, Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := d.decode(row)
		want, wantErr := plain.decode(row)
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("error %v, want %v\nof %v", gotErr, wantErr, v)
		}
		if gotErr != nil {
			refused++
			continue
		}
		if a, b := recordsText(got), recordsText(want); a != b {
			t.Fatalf("decoded\n%s\nwant\n%s\nof %v", a, b, v)
		}
	}
	if refused == 0 || refused > 1500 {
		t.Errorf("%d of 3000 were refused", refused)
	}
}

// recordsText formats records.
func recordsText(r *changeRecords) string {
	var b strings.Builder
	for _, d := range r.data {
		fmt.Fprintln(&b, d.commit, d.sequence, d.transaction, d.table, d.records, d.tag, d.system)
		for _, c := range d.changes {
			fmt.Fprintln(&b, c.Table, c.Kind, c.CommitTimestamp, c.RecordSequence)
			for _, row := range []Row{c.Key, c.Values, c.OldValues} {
				fmt.Fprintln(&b, row.Columns == nil, row.Values == nil)
				for i, v := range row.Values {
					text, err := proto.MarshalOptions{Deterministic: true}.Marshal(v)
					fmt.Fprintf(&b, "%s %v %x %v\n", row.Columns[i].Name, row.Columns[i].Type.GetCode(), text, err)
				}
			}
		}
	}
	fmt.Fprintln(&b, r.heartbeats, r.children)
	return b.String()
}

// randomRecords returns a random value of ChangeRecord.
func randomRecords(t *testing.T, r *rand.Rand) *structpb.Value {
	var rows []any
	for range r.IntN(3) {
		data, heartbeats, children := []any{}, []any{}, []any{}
		switch r.IntN(8) {
		case 0:
			heartbeats = append(heartbeats, []any{"2026-01-02T03:04:05Z"})
		case 1:
			children = append(children, []any{"2026-01-02T03:04:05Z", "1", []any{[]any{"a", []any{"p", "q"}}, []any{"b", []any{}}}})
		default:
			data = append(data, randomData(r))
		}
		rows = append(rows, []any{data, heartbeats, children})
	}
	v, err := structpb.NewValue(rows)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// randomData returns a random data_change_record. Two successive records rarely have the same table with the same
// columns.
func randomData(r *rand.Rand) []any {
	names := []string{"Id", "Name", "é", "Info", `a"b`}
	var columns, mods []any
	for i := range r.IntN(len(names) + 1) {
		columns = append(columns, []any{names[i], pick(r, `{"code":"STRING"}`, `{"code":"INT64"}`, `{"code":"ARRAY","array_element_type":{"code":"BOOL"}}`), i < 1, "1"})
	}
	if r.IntN(100) == 0 {
		columns = append(columns, []any{"Broken", "{", false, "1"})
	}
	for range r.IntN(3) {
		mods = append(mods, []any{randomObject(r, names[:1]), randomObject(r, names[1:]), pick[any](r, "{}", "", nil, randomObject(r, names[1:]))})
	}
	return []any{
		"2026-01-02T03:04:05.678901Z", fmt.Sprintf("%08d", r.IntN(100)), "tx", r.IntN(2) == 0, pick[any](r, "T", "S.T", nil), columns, mods,
		pick[any](r, "INSERT", "UPDATE", "DELETE", "INSERT", "UPDATE", "DELETE", "UPSERT"), "NEW_VALUES",
		pick[any](r, "1", "2", "3", "4", "5", "x"), "1", pick(r, "", "tag"), r.IntN(2) == 0,
	}
}

// randomObject returns a JSON object with some of the names, in any order.
func randomObject(r *rand.Rand, names []string) string {
	var members []string
	for _, i := range r.Perm(len(names)) {
		if r.IntN(8) > 0 {
			members = append(members, pick(r, "", " ", "\n\t")+strconv.Quote(names[i])+pick(r, ":", " : ")+randomJSON(r, 0))
		}
	}
	if r.IntN(20) == 0 && len(members) > 0 {
		members = append(members, members[0], `"Unknown":[1,{"a":null}]`)
	}
	text := "{" + strings.Join(members, ",") + "}"
	if r.IntN(20) == 0 { // may make the object invalid
		at := r.IntN(len(text))
		text = strings.ToValidUTF8(text[:at]+pick(r, "", "x", `"`, "}", "\x01", ",", " ", "1", `\`)+text[at+r.IntN(2):], "?")
	}
	return text
}

// randomJSON returns a random JSON value or, sometimes, a text that is not valid JSON.
func randomJSON(r *rand.Rand, depth int) string {
	switch n := r.IntN(24); {
	case n == 0 && depth < 4:
		return "[" + randomJSON(r, depth+1) + ", " + randomJSON(r, depth+1) + "]"
	case n == 1 && depth < 4:
		return `{"a":` + randomJSON(r, depth+1) + `,"":` + randomJSON(r, depth+1) + "}"
	case n < 4:
		return pick(r, "null", "true", "false", "[]", "{}", "[ ]", "nul", "truex", "")
	case n < 8:
		return pick(r, "0", "-0", "1.5", "-12e3", "1E+2", "1e-400", "1e400", "01", "1.", ".5", "+1", "-", "1e", "0x1", "Infinity", "12345678901234567890")
	}
	return pick(r, `""`, `"a"`, `"7"`, `"NaN"`, `"日本"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\n\"\\\/"`, `"\q"`, "\"\x01\"", `"open`, `"QUJD"`, `"{\"a\":1}"`)
}

// recordType returns the type of ChangeRecord.
func recordType(t testing.TB) *spannerpb.Type {
	const field = `{"name":%q,"type":%s}`
	array := func(fields ...string) string {
		var list []string
		for i := 0; i < len(fields); i += 2 {
			list = append(list, fmt.Sprintf(field, fields[i], fields[i+1]))
		}
		return `{"code":"ARRAY","arrayElementType":{"code":"STRUCT","structType":{"fields":[` + strings.Join(list, ",") + "]}}}"
	}
	const text, flag, number, at = `{"code":"STRING"}`, `{"code":"BOOL"}`, `{"code":"INT64"}`, `{"code":"TIMESTAMP"}`
	data := array("commit_timestamp", at, "record_sequence", text, "server_transaction_id", text, "is_last_record_in_transaction_in_partition", flag,
		"table_name", text, "column_types", array("name", text, "type", `{"code":"JSON"}`, "is_primary_key", flag, "ordinal_position", number),
		"mods", array("keys", text, "new_values", text, "old_values", text), "mod_type", text, "value_capture_type", text,
		"number_of_records_in_transaction", number, "number_of_partitions_in_transaction", number, "transaction_tag", text, "is_system_transaction", flag)
	children := array("start_timestamp", at, "record_sequence", text, "child_partitions", array("token", text, "parent_partition_tokens", `{"code":"ARRAY","arrayElementType":{"code":"STRING"}}`))
	of := new(spannerpb.Type)
	if err := protojson.Unmarshal([]byte(array("data_change_record", data, "heartbeat_record", array("timestamp", at), "child_partitions_record", children)), of); err != nil {
		t.Fatal(err)
	}
	return of
}

// plainDecoder decodes rows in a slow but simple way: it looks up fields by their names, and decodes JSON into maps.
type plainDecoder struct {
	database string
	types    map[string]*spannerpb.Type
}

func newPlainDecoder(database string) *plainDecoder {
	return &plainDecoder{database: database, types: map[string]*spannerpb.Type{}}
}

func (d *plainDecoder) decode(row *spanner.Row) (*changeRecords, error) {
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
				s := plainStruct(of, record)
				var err error
				switch fields[i].Name {
				case "data_change_record":
					err = d.addData(records, s)
				case "heartbeat_record":
					records.heartbeats = append(records.heartbeats, s.time("timestamp"))
				case "child_partitions_record":
					plainChildren(records, s)
				}
				if err != nil {
					return nil, err
				}
			}
		}
	}
	return records, nil
}

func plainChildren(r *changeRecords, s structValue) {
	for _, v := range s.structs("child_partitions") {
		c := childPartition{token: v.text("token"), start: s.time("start_timestamp")}
		for _, p := range v.list("parent_partition_tokens") {
			c.parents = append(c.parents, p.GetStringValue())
		}
		r.children = append(r.children, c)
	}
}

func (d *plainDecoder) addData(to *changeRecords, s structValue) error {
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

// columns returns the columns that a record lists in its field column_types: the columns of the key, and then the
// remaining columns.
func (d *plainDecoder) columns(list []structValue) (keys, others []Column, err error) {
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

// rowOf returns a Row with the values that a JSON object has for the given columns.
func rowOf(text string, columns []Column) (row Row, err error) {
	if text == "" || text == "{}" {
		return Row{}, nil
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return Row{}, err
	}
	for _, c := range columns {
		v, ok := object[c.Name]
		if !ok {
			continue
		}
		row.Columns = append(row.Columns, c)
		coded, err := structpb.NewValue(v)
		if err != nil {
			return Row{}, err
		}
		row.Values = append(row.Values, coded)
	}
	return row, nil
}

// structValue is a STRUCT value with its fields.
type structValue struct {
	fields []*spannerpb.StructType_Field
	values []*structpb.Value
}

func plainStruct(fields []*spannerpb.StructType_Field, v *structpb.Value) structValue {
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

// value returns the value of a field. If there is no such field, it returns nil. Getters such as GetStringValue return
// empty values for nil.
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
		list = append(list, plainStruct(fields, v))
	}
	return list
}

// time returns a TIMESTAMP field as a time. NULL gives the zero time.
func (s structValue) time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s.text(name))
	return t
}

// BenchmarkRecord compares recordDecoder with plainDecoder.
func BenchmarkRecord(b *testing.B) {
	column := func(name, of string, key bool) any { return []any{name, `{"code":"` + of + `"}`, key, "1"} }
	v, err := structpb.NewValue([]any{[]any{[]any{[]any{
		"2026-01-02T03:04:05.678901Z", "00000000", "MTIzNDU2Nzg5MDEyMzQ1Njc4", true, "Singers",
		[]any{column("SingerId", "INT64", true), column("FirstName", "STRING", false), column("LastName", "STRING", false), column("Updated", "TIMESTAMP", false)},
		[]any{[]any{`{"SingerId":"123456789"}`, `{"FirstName":"Marc","LastName":"Richards","Updated":"2026-01-02T03:04:05.678901Z"}`, `{}`}},
		"INSERT", "OLD_AND_NEW_VALUES", "1", "1", "", false,
	}}, []any{}, []any{}}})
	if err != nil {
		b.Fatal(err)
	}
	row, err := spanner.NewRow([]string{"ChangeRecord"}, []any{spanner.GenericColumnValue{Type: recordType(b), Value: v}})
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func(*spanner.Row) (*changeRecords, error){"plain": newPlainDecoder("d").decode, "record": newRecordDecoder("d").decode} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
