package watch

import (
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
	bytes       int // bytes of the changes' JSON
	records     int // the number of records of the transaction in all partitions
	tag         string
	system      bool
	partition   *streamPartition // the partition from which the record was read
}

// childPartition is a partition that a child_partitions_record names.
type childPartition struct {
	token   string
	start   time.Time
	parents []string
}

// recordDecoder decodes the rows of a query. It caches what all records have in common: the positions of their fields,
// and the columns of tables.
type recordDecoder struct {
	database string
	format   *recordFormat
	tables   map[string]*recordTable    // by their names
	types    map[string]*spannerpb.Type // types of columns, by their JSON
	mod      modDecoder
}

func newRecordDecoder(database string) *recordDecoder {
	return &recordDecoder{database: database, tables: map[string]*recordTable{}, types: map[string]*spannerpb.Type{}}
}

func (d *recordDecoder) decode(row *spanner.Row) (*changeRecords, error) {
	if t := row.ColumnType(0); d.format == nil || d.format.of != t {
		d.format = newRecordFormat(t)
	}
	f, records := d.format, new(changeRecords)
	for _, record := range elements(row.ColumnValue(0)) {
		fields := elements(record)
		for _, values := range elements(field(fields, f.data)) {
			if err := d.addData(records, elements(values)); err != nil {
				return nil, err
			}
		}
		for _, values := range elements(field(fields, f.heartbeat)) {
			records.heartbeats = append(records.heartbeats, timestamp(field(elements(values), f.heartbeatTime)))
		}
		for _, values := range elements(field(fields, f.children)) {
			records.addChildren(&f.childrenFields, elements(values))
		}
	}
	return records, nil
}

func (r *changeRecords) addChildren(f *childrenFields, values []*structpb.Value) {
	start := timestamp(field(values, f.start))
	for _, v := range elements(field(values, f.partitions)) {
		partition := elements(v)
		c := childPartition{token: field(partition, f.token).GetStringValue(), start: start}
		for _, p := range elements(field(partition, f.parents)) {
			c.parents = append(c.parents, p.GetStringValue())
		}
		r.children = append(r.children, c)
	}
}

var kindsByName = map[string]Kind{"INSERT": Insert, "UPDATE": Update, "DELETE": Delete}

func (d *recordDecoder) addData(to *changeRecords, values []*structpb.Value) error {
	f := &d.format.dataFields
	text := func(i int) string { return field(values, i).GetStringValue() }
	table, err := d.table(text(f.table), elements(field(values, f.columns)))
	if err != nil {
		return err
	}
	r := &dataRecord{
		commit: timestamp(field(values, f.commit)), sequence: text(f.sequence), transaction: text(f.transaction),
		table: table.id, tag: text(f.tag), system: field(values, f.system).GetBoolValue(),
	}
	if r.records, err = strconv.Atoi(text(f.records)); err != nil {
		return fmt.Errorf("number_of_records_in_transaction: %w", err)
	}
	kind, ok := kindsByName[text(f.kind)]
	if !ok {
		return fmt.Errorf("mod_type %q is not known", text(f.kind))
	}
	mods := elements(field(values, f.mods))
	r.changes = make([]Change, len(mods))
	for i, mod := range mods {
		c := &r.changes[i]
		*c = Change{Table: r.table, Kind: kind, CommitTimestamp: r.commit, RecordSequence: r.sequence}
		n, err := d.rows(elements(mod), table, c)
		if err != nil {
			return err
		}
		r.bytes += n
	}
	to.data = append(to.data, r)
	return nil
}

// rows decodes the keys, new values and old values of a mod and stores them in the change c. It returns the number of bytes of their JSON.
func (d *recordDecoder) rows(mod []*structpb.Value, table *recordTable, c *Change) (bytes int, err error) {
	f := &d.format.dataFields
	d.mod.begin()
	for _, part := range []struct {
		name    string
		at      int
		columns []Column
	}{{"keys", f.keys, table.keys}, {"new_values", f.newValues, table.others}, {"old_values", f.oldValues, table.others}} {
		text := field(mod, part.at).GetStringValue()
		if err := d.mod.scan(text, part.columns); err != nil {
			return 0, fmt.Errorf("%s: %w", part.name, err)
		}
		bytes += len(text)
	}
	c.Key, c.Values, c.OldValues = d.mod.row(table.keys), d.mod.row(table.others), d.mod.row(table.others)
	return bytes, nil
}

// recordTable is a table with the columns that the table had in its last record.
type recordTable struct {
	id      TableID
	columns []recordColumn
	// keys are the columns of the key, and others are the remaining columns. Rows share these slices.
	keys, others []Column
}

// recordColumn is an element of column_types.
type recordColumn struct {
	Column
	text string // the type as JSON
	key  bool
}

// table returns the recordTable for the table name and column_types of a record.
func (d *recordDecoder) table(name string, columns []*structpb.Value) (*recordTable, error) {
	f := &d.format.dataFields
	if t := d.tables[name]; t != nil && t.has(f, columns) {
		return t, nil
	}
	t := &recordTable{id: named(d.database, name)}
	for _, v := range columns {
		values := elements(v)
		c := recordColumn{text: field(values, f.columnType).GetStringValue(), key: field(values, f.columnKey).GetBoolValue()}
		var err error
		if c.Type, err = d.columnType(c.text); err != nil {
			return nil, err
		}
		c.Name = field(values, f.columnName).GetStringValue()
		t.columns = append(t.columns, c)
		if c.key {
			t.keys = append(t.keys, c.Column)
		} else {
			t.others = append(t.others, c.Column)
		}
	}
	d.tables[name] = t
	return t, nil
}

// has reports whether the columns of a record are those of t.
func (t *recordTable) has(f *dataFields, columns []*structpb.Value) bool {
	if len(columns) != len(t.columns) {
		return false
	}
	for i, v := range columns {
		c, values := &t.columns[i], elements(v)
		if field(values, f.columnName).GetStringValue() != c.Name || field(values, f.columnType).GetStringValue() != c.text ||
			field(values, f.columnKey).GetBoolValue() != c.key {
			return false
		}
	}
	return true
}

// columnType parses the JSON of a type.
func (d *recordDecoder) columnType(text string) (*spannerpb.Type, error) {
	t := d.types[text]
	if t == nil {
		t = new(spannerpb.Type)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), t); err != nil {
			return nil, fmt.Errorf("type %s: %w", text, err)
		}
		d.types[text] = t
	}
	return t, nil
}

// elements returns the elements of an ARRAY, or the fields of a STRUCT.
func elements(v *structpb.Value) []*structpb.Value { return v.GetListValue().GetValues() }

// timestamp returns a TIMESTAMP value as a time. NULL gives the zero time.
func timestamp(v *structpb.Value) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, v.GetStringValue())
	return t
}
