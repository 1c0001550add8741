package database

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestChangeStreamRecords runs the scripts in testdata/change_streams. Each command prints the data change records of
// the rows that it has written.
//
//	ddl                          runs DDL statements, one per line
//	dml [tag=TEXT] [excluded]    runs DML statements, one per line, in one transaction; undoes those that fail
//	commit [tag=TEXT] [excluded] runs mutations, one per line, in one transaction:
//	                             insert | update | insertorupdate | replace TABLE {"column": value}, or
//	                             delete TABLE all | [key] | [first key] .. [last key]
//	pdml [excluded]              runs a partitioned DML statement
//	clock DURATION               advances the clock
//	pass                         makes one pass over the tables with a row deletion policy
//
// A record is printed as STREAM SEQUENCE/RECORDS OPERATION TABLE (COLUMNS), with a * after each key column. Then follow
// "more follow" if it is not the last record of its transaction in its partition, the tag if there is one, and "system"
// if it is of a system transaction. The next lines are its mods: keys, new values, old values. The commit timestamp is
// printed as COMMIT.
func TestChangeStreamRecords(t *testing.T) {
	datadriven.Walk(t, "testdata/change_streams", func(t *testing.T, path string) {
		s := &streamScript{aged: newAged(t), printed: map[string]bool{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			err := s.run(d)
			out := s.records()
			if err != nil {
				out += fmt.Sprintf("%s: %v\n", usererror.CodeOf(err), err)
			}
			return out
		})
	})
}

type streamScript struct {
	*aged
	printed map[string]bool // the keys of records that were printed
}

func (s *streamScript) run(d *datadriven.TestData) error {
	ctx := context.Background()
	opts := txn.Options{Excluded: d.HasArg("excluded")}
	d.MaybeScanArgs(s.t, "tag", &opts.Tag)
	switch d.Cmd {
	case "ddl":
		return s.db.UpdateSchema(ctx, strings.Split(d.Input, "\n"), nil)
	case "dml":
		return s.dml(opts, strings.Split(d.Input, "\n"))
	case "commit":
		_, err := s.db.Transactions().Begin(opts).Commit(ctx, func(w table.Writer) error { return s.mutate(w, d.Input) }, txn.CommitOptions{})
		return err
	case "pdml":
		stmt, err := s.db.Prepare(ctx, s.db.Catalog(), d.Input, nil, prepare.Options{})
		if err != nil {
			return err
		}
		_, err = s.db.PartitionedDML(ctx, PartitionedDML{Statement: stmt, Tracker: new(split.Tracker), Excluded: opts.Excluded})
		return err
	case "clock":
		step, err := time.ParseDuration(d.CmdArgs[0].Key)
		s.now.Add(step.Microseconds())
		return err
	case "pass":
		s.db.expiry.Pass(ctx)
		return nil
	}
	return fmt.Errorf("unknown command %s", d.Cmd)
}

// dml runs statements in one transaction. If a statement fails, dml undoes it, commits the other statements and returns
// the error.
func (s *streamScript) dml(opts txn.Options, statements []string) (failed error) {
	tx := s.db.Transactions().Begin(opts)
	for _, sql := range statements {
		before := tx.Savepoint()
		if err := s.execute(tx, sql); err != nil {
			tx.RollbackTo(before)
			failed = err
		}
	}
	if _, err := tx.Commit(context.Background(), nil, txn.CommitOptions{}); err != nil {
		return err
	}
	return failed
}

func (s *streamScript) mutate(w table.Writer, lines string) error {
	var muts []table.Mutation
	for _, line := range strings.Split(lines, "\n") {
		m, err := s.mutation(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		muts = append(muts, m)
	}
	tables, err := s.db.Tables(s.db.Catalog())
	if err != nil {
		return err
	}
	_, err = table.Apply(context.Background(), w, tables, muts, s.clock())
	return err
}

var mutationOps = map[string]table.Op{
	"insert": table.Insert, "update": table.Update, "insertorupdate": table.InsertOrUpdate, "replace": table.Replace, "delete": table.Delete,
}

func (s *streamScript) mutation(line string) (m table.Mutation, err error) {
	op, rest, _ := strings.Cut(line, " ")
	name, rest, _ := strings.Cut(rest, " ")
	m.Table = s.db.Catalog().Table(name)
	var known bool
	if m.Op, known = mutationOps[op]; !known || m.Table == nil {
		return m, fmt.Errorf("unknown operation or table")
	}
	if m.Op == table.Delete {
		m.Keys, err = s.keys(m.Table, rest)
		return m, err
	}
	var row structpb.Struct
	if err := row.UnmarshalJSON([]byte(rest)); err != nil {
		return m, err
	}
	var vals []value.Value
	for _, c := range m.Table.Columns {
		if p, given := row.Fields[c.Name]; given {
			v, err := columnValue(p, c.Type)
			if err != nil {
				return m, err
			}
			m.Columns, vals = append(m.Columns, c), append(vals, v)
		}
	}
	m.Rows = [][]value.Value{vals}
	return m, nil
}

// columnValue decodes a value of a script. The text COMMIT in a TIMESTAMP column is the commit timestamp.
func columnValue(p *structpb.Value, t *value.Type) (value.Value, error) {
	if t.Kind == value.Timestamp && p.GetStringValue() == "COMMIT" {
		return value.PendingCommitTimestamp(), nil
	}
	return value.FromWire(p, t)
}

func (s *streamScript) keys(t *schema.Table, text string) (ks table.KeySet, err error) {
	if text == "all" {
		return table.KeySet{All: true}, nil
	}
	first, last, isRange := strings.Cut(text, " .. ")
	if !isRange {
		key, err := s.key(t, first)
		return table.KeySet{Keys: [][]value.Value{key}}, err
	}
	var r table.KeyRange
	if r.Start, err = s.key(t, first); err != nil {
		return ks, err
	}
	r.End, err = s.key(t, last)
	return table.KeySet{Ranges: []table.KeyRange{r}}, err
}

func (s *streamScript) key(t *schema.Table, text string) (key []value.Value, err error) {
	var list structpb.ListValue
	if err := list.UnmarshalJSON([]byte(text)); err != nil {
		return nil, err
	}
	for i, p := range list.Values {
		v, err := value.FromWire(p, t.Key[i].Column.Type)
		if err != nil {
			return nil, err
		}
		key = append(key, v)
	}
	return key, nil
}

// records returns the text of the records that were written since the last call, ordered by commit and then by stream.
func (s *streamScript) records() string {
	prefix := append(make([]byte, 4), "changestream/record/"...)
	it, err := s.store.NewIter(prefix, append(slices.Clone(prefix), 0xff))
	if err != nil {
		s.t.Fatal(err)
	}
	defer it.Close()
	type stored struct {
		at   uint64
		text string
	}
	var list []stored
	for ok := it.First(); ok; ok = it.Next() {
		val, err := it.Value()
		if err != nil {
			s.t.Fatal(err)
		}
		if s.printed[string(it.Key())] {
			continue
		}
		s.printed[string(it.Key())] = true
		key := it.Key()[len(prefix):] // has the space, stream, partition, timestamp, sequence and a zero byte
		stream := s.streamName(schema.ChangeStreamID(binary.BigEndian.Uint64(key[4:])))
		list = append(list, stored{binary.BigEndian.Uint64(key[4+8+8:]), s.record(stream, val)})
	}
	slices.SortStableFunc(list, func(a, b stored) int { return int(int64(a.at) - int64(b.at)) })
	var out strings.Builder
	for _, r := range list {
		out.WriteString(r.text)
	}
	return out.String()
}

func (s *streamScript) streamName(id schema.ChangeStreamID) string {
	for _, cs := range s.db.Catalog().Streams {
		if cs.ID == id {
			return cs.Name
		}
	}
	return fmt.Sprint(id)
}

// record returns the text of one stored record.
func (s *streamScript) record(stream string, stored []byte) string {
	var v structpb.Value
	if err := proto.Unmarshal(stored, &v); err != nil {
		s.t.Fatal(err)
	}
	r := v.GetListValue().Values[0].GetListValue().Values[0].GetListValue().Values[0].GetListValue().Values
	text := func(i int) string { return r[i].GetStringValue() }
	var columns []string
	for _, c := range r[5].GetListValue().Values {
		name := c.GetListValue().Values[0].GetStringValue()
		if c.GetListValue().Values[2].GetBoolValue() {
			name += "*"
		}
		columns = append(columns, name)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s %s %s (%s)", stream, strings.TrimLeft(text(1)[:7], "0")+text(1)[7:], text(9), text(7), text(4), strings.Join(columns, ", "))
	if !r[3].GetBoolValue() {
		out.WriteString(" more follow")
	}
	if text(11) != "" {
		fmt.Fprintf(&out, " tag=%s", text(11))
	}
	if r[12].GetBoolValue() {
		out.WriteString(" system")
	}
	for _, m := range r[6].GetListValue().Values {
		out.WriteString("\n ")
		for _, object := range m.GetListValue().Values {
			if !json.Valid([]byte(object.GetStringValue())) {
				s.t.Errorf("not JSON: %s", object.GetStringValue())
			}
			out.WriteString(" " + strings.ReplaceAll(object.GetStringValue(), text(0), "COMMIT"))
		}
	}
	out.WriteByte('\n')
	return out.String()
}
