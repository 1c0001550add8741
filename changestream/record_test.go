package changestream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// batch keeps the keys and values that are put into it. It implements only Put, because writing change records needs no
// other method of kv.Batch.
type batch struct {
	kv.Batch
	keys    []string
	records [][]byte
}

func (b *batch) Put(key, val []byte) error {
	b.keys = append(b.keys, string(key))
	b.records = append(b.records, slices.Clone(val))
	return nil
}

// catalog returns the catalog that DDL statements make.
func catalog(t testing.TB, statements ...string) *schema.Catalog {
	t.Helper()
	c := schema.NewCatalog()
	for _, s := range statements {
		var err error
		if c, _, err = c.Apply(s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return c
}

// written is a transaction of a test, which writes rows of one table.
type written struct {
	t       testing.TB
	table   *schema.Table
	watches []*table.Watch
	enc     Encoder
	tx      Transaction
	size    int // the estimated number of bytes that the changes add to the commit
	Changes
}

func write(t testing.TB, c *schema.Catalog, name string) *written {
	w := &written{t: t, table: c.Table(name)}
	for _, by := range c.Watchers(w.table) {
		w.watches = append(w.watches, table.NewWatch(w.table, by))
	}
	return w
}

// change captures a change of a row. columns names the columns to which the change gives a value.
func (w *written) change(op table.Op, old, row []value.Value, columns ...string) {
	w.t.Helper()
	c := table.Change{Table: w.table, Watches: w.watches, Op: op, Old: old, New: row, Written: make([]bool, len(w.table.Columns))}
	for _, name := range columns {
		c.Written[w.table.Column(name).Ordinal] = true
	}
	key := row
	if op == table.Delete {
		key = old
	}
	var parts []value.Value
	for _, p := range w.table.Key {
		parts = append(parts, key[p.Column.Ordinal])
	}
	c.Key = table.TableLayout(w.table).AppendKey(nil, parts)
	for _, watch := range w.watches {
		if m, ok := w.enc.Encode(&c, watch, &w.tx); ok {
			size, _ := w.Add(m)
			w.size += size
		}
	}
}

// commit appends the records of the changes to a batch and decodes them.
func (w *written) commit(l *Log, ts mvcc.Timestamp) []dataRecord {
	w.t.Helper()
	b := new(batch)
	if _, err := w.Append(b, l, ts, &w.tx); err != nil {
		w.t.Fatal(err)
	}
	var list []dataRecord
	for _, r := range b.records {
		list = append(list, decode(w.t, r))
	}
	return list
}

// dataRecord is a data change record as a client gets it: the values of its fields, in order.
type dataRecord []*structpb.Value

func (r dataRecord) text(i int) string { return r[i].GetStringValue() }

// mods formats the keys, new values and old values of each mod of the record.
func (r dataRecord) mods() (list []string) {
	for _, m := range r[6].GetListValue().Values {
		var parts []string
		for _, v := range m.GetListValue().Values {
			parts = append(parts, v.GetStringValue())
		}
		list = append(list, strings.Join(parts, " "))
	}
	return list
}

func decode(t testing.TB, record []byte) dataRecord {
	t.Helper()
	var v structpb.Value
	if err := proto.Unmarshal(record, &v); err != nil {
		t.Fatalf("%v: %x", err, record)
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&v)
	if err != nil || string(again) != string(record) {
		t.Fatalf("a record is not coded as protobuf does: %v\n%x\n%x", err, record, again)
	}
	structs := v.GetListValue().Values
	if len(structs) != 1 {
		t.Fatalf("%d structs", len(structs))
	}
	lists := structs[0].GetListValue().Values
	if len(lists) != 3 || len(lists[0].GetListValue().Values) != 1 || len(lists[1].GetListValue().Values)+len(lists[2].GetListValue().Values) != 0 {
		t.Fatalf("not one data change record: %v", &v)
	}
	return lists[0].GetListValue().Values[0].GetListValue().Values
}

// logOf returns a log in which each stream of the catalog has one partition.
func logOf(c *schema.Catalog) *Log {
	l := &Log{streams: map[schema.ChangeStreamID]*stream{}}
	for _, s := range c.Streams {
		l.streams[s.ID] = l.newStream(s.ID, 1, nil)
	}
	return l
}

func text(s string) value.Value { return value.OfString(s) }
func num(i int) value.Value     { return value.OfInt64(int64(i)) }

const singers = "CREATE TABLE Singers (Id INT64, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)"

// TestRecordFields checks every field of a data change record, and the order of the fields.
func TestRecordFields(t *testing.T) {
	c := catalog(t, singers, "CREATE CHANGE STREAM S FOR ALL")
	w := write(t, c, "Singers")
	w.tx = Transaction{Tag: "app=t", System: true}
	w.change(table.Insert, nil, []value.Value{num(1), text("a"), value.Null(value.Int64)}, "Id", "Name")
	w.change(table.Insert, nil, []value.Value{num(2), text("b"), value.Null(value.Int64)}, "Id", "Name")
	records := w.commit(logOf(c), 1_700_000_000_123_450)
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	got, err := json.Marshal((&structpb.ListValue{Values: records[0]}).AsSlice())
	if err != nil {
		t.Fatal(err)
	}
	want := `["2023-11-14T22:13:20.123450Z","00000000","1700000000123450",true,"Singers",` +
		`[["Id","{\"code\":\"INT64\"}",true,"1"],["Name","{\"code\":\"STRING\"}",false,"2"]],` +
		`[["{\"Id\":\"1\"}","{\"Name\":\"a\"}","{}"],["{\"Id\":\"2\"}","{\"Name\":\"b\"}","{}"]],` +
		`"INSERT","OLD_AND_NEW_VALUES","1","1","app=t",true]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRecordsOfOneTransaction checks which changes are put into the same record, and that the numbers of records and
// partitions of a transaction are counted separately for each stream.
func TestRecordsOfOneTransaction(t *testing.T) {
	c := catalog(t, singers, "CREATE CHANGE STREAM S FOR ALL", "CREATE CHANGE STREAM Names FOR Singers(Name)")
	l := logOf(c)
	all := l.streams[c.Streams[0].ID]
	all.current, _ = all.cut([][]byte{table.TableLayout(c.Table("Singers")).AppendKey(nil, []value.Value{num(10)})}, 1)
	w := write(t, c, "Singers")
	row := func(id int, name string) []value.Value { return []value.Value{num(id), text(name), num(id)} }
	columns := []string{"Id", "Name", "Age"}
	w.change(table.Insert, nil, row(1, "a"), columns...)
	w.change(table.Insert, nil, row(11, "b"), columns...)
	w.change(table.Insert, nil, row(2, "c"), columns...) // goes into the record of the first change
	w.change(table.Update, row(1, "a"), row(1, "d"), "Name")
	w.change(table.Update, row(2, "c"), row(2, "c"), "Age") // the stream Names does not watch Age
	w.change(table.Update, row(2, "c"), row(2, "e"), "Name")
	w.change(table.Delete, row(11, "b"), nil)

	var got []string
	for _, r := range w.commit(l, 5) {
		got = append(got, fmt.Sprintf("%s of %s in %s, last %v: %s %s", r.text(1), r.text(9), r.text(10), r[3].GetBoolValue(), r.text(7), strings.Join(r.mods(), ", ")))
	}
	want := []string{
		`00000000 of 6 in 2, last false: INSERT {"Id":"1"} {"Age":"1","Name":"a"} {}, {"Id":"2"} {"Age":"2","Name":"c"} {}`,
		`00000000 of 3 in 1, last false: INSERT {"Id":"1"} {"Name":"a"} {}, {"Id":"11"} {"Name":"b"} {}, {"Id":"2"} {"Name":"c"} {}`,
		`00000001 of 6 in 2, last false: INSERT {"Id":"11"} {"Age":"11","Name":"b"} {}`,
		`00000002 of 6 in 2, last false: UPDATE {"Id":"1"} {"Name":"d"} {"Name":"a"}`,
		`00000001 of 3 in 1, last false: UPDATE {"Id":"1"} {"Name":"d"} {"Name":"a"}, {"Id":"2"} {"Name":"e"} {"Name":"c"}`,
		`00000003 of 6 in 2, last false: UPDATE {"Id":"2"} {"Age":"2"} {"Age":"2"}`,
		`00000004 of 6 in 2, last true: UPDATE {"Id":"2"} {"Name":"e"} {"Name":"c"}`,
		`00000005 of 6 in 2, last true: DELETE {"Id":"11"} {} {"Age":"11","Name":"b"}`,
		`00000002 of 3 in 1, last true: DELETE {"Id":"11"} {} {"Name":"b"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLargeRecordsAreCut checks that a large transaction has several records, and that a row that exceeds
// maxRecordBytes gets a record of its own.
func TestLargeRecordsAreCut(t *testing.T) {
	c := catalog(t, singers, "CREATE CHANGE STREAM S FOR ALL")
	w := write(t, c, "Singers")
	name := strings.Repeat("x", maxRecordBytes/4)
	for i := range 9 {
		w.change(table.Insert, nil, []value.Value{num(i), text(name), num(i)}, "Id", "Name", "Age")
	}
	w.change(table.Insert, nil, []value.Value{num(9), text(strings.Repeat("y", 10<<20)), num(9)}, "Id", "Name", "Age")
	w.change(table.Insert, nil, []value.Value{num(10), text("z"), num(10)}, "Id", "Name", "Age")
	var got []int
	for i, r := range w.commit(logOf(c), 5) {
		got = append(got, len(r.mods()))
		if want := fmt.Sprintf("%08d", i); r.text(1) != want || r.text(9) != "5" {
			t.Errorf("record %d is number %s of %s", i, r.text(1), r.text(9))
		}
	}
	if want := []int{3, 3, 3, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("mods of the records: %v, want %v", got, want)
	}
}

// TestCommitSize checks that the estimated size that changes add to a commit is close to the size of their records,
// whether the changes share a record or not. One of the tables has 400 columns, so that the column types take a large
// part of a record.
func TestCommitSize(t *testing.T) {
	var wide strings.Builder
	for i := range 400 {
		fmt.Fprintf(&wide, "Column%d %s, ", i, []string{"STRING(MAX)", "INT64", "ARRAY<BOOL>"}[i%3])
	}
	for name, def := range map[string]string{"narrow": "", "wide": wide.String()} {
		c := catalog(t, "CREATE TABLE T (Id INT64, "+def+"Name STRING(MAX)) PRIMARY KEY (Id)", "CREATE CHANGE STREAM S FOR ALL", "CREATE CHANGE STREAM Names FOR T(Name)")
		for _, one := range []bool{true, false} {
			w := write(t, c, "T")
			row := make([]value.Value, len(w.table.Columns))
			row[len(row)-1] = text("name")
			for i := range 200 {
				row[0] = num(i)
				w.change(table.Insert, nil, row, "Id", "Name")
				if !one {
					w.change(table.Delete, row, nil)
				}
			}
			b := new(batch)
			if _, err := w.Append(b, logOf(c), 5, &w.tx); err != nil {
				t.Fatal(err)
			}
			bytes := 0
			for i, r := range b.records {
				bytes += len(b.keys[i]) + len(r)
			}
			if w.size < bytes*9/10 || w.size > bytes*11/10 {
				t.Errorf("%s, one record of each stream %v: %d bytes in %d records, counted %d", name, one, bytes, len(b.records), w.size)
			}
		}
	}
}

// TestAppendAgain checks that after a refused commit, Append can be called again with another timestamp.
func TestAppendAgain(t *testing.T) {
	c := catalog(t, "CREATE TABLE Log (Ts TIMESTAMP OPTIONS (allow_commit_timestamp = true), Note STRING(MAX)) PRIMARY KEY (Ts)", "CREATE CHANGE STREAM S FOR ALL")
	w := write(t, c, "Log")
	w.change(table.Insert, nil, []value.Value{value.PendingCommitTimestamp(), text("n")}, "Ts", "Note")
	for _, ts := range []mvcc.Timestamp{1_700_000_000_000_001, 1_700_000_000_000_002} {
		records := w.commit(logOf(c), ts)
		want := []string{fmt.Sprintf(`{"Ts":"2023-11-14T22:13:20.00000%dZ"} {"Note":"n"} {}`, ts%10)}
		if len(records) != 1 || !slices.Equal(records[0].mods(), want) {
			t.Errorf("at %d: %v, want %s", ts, records, want)
		}
	}
}
