package crossings

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

const changeStream = "change streams"

func init() {
	add(feature{name: changeStream, alone: true, change: (*world).changeStream, read: (*world).streamReading})
}

// changeStream returns a change that creates the change stream, or one that drops it.
func (w *world) changeStream() *change {
	if !w.now().m.streamed.IsZero() {
		if w.rng.IntN(4) > 0 {
			return nil
		}
		return &change{statements: []string{"DROP CHANGE STREAM Every"}, features: of(changeStream), apply: func(m *model) { m.streamed = time.Time{} }}
	}
	return &change{statements: []string{"CREATE CHANGE STREAM Every FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"}, features: of(changeStream),
		apply: func(m *model) { m.streamed = time.Unix(0, 0) }} // world.became replaces this by the time of the commit
}

// A streamRecord is one changed row in a record of the change stream.
type streamRecord struct {
	at         time.Time
	sequence   string
	table      string
	op         string
	keys, news map[string]any
}

func (r *streamRecord) key(t *table) string {
	return t.keyText(func(name string) cell { return jsonCell(t.column(name).kind, r.keys[name]) })
}

// streamReading returns a reading that reads the change stream and compares the stream's records with the history.
// Every difference between two successive states must be in a record between them, and each record must hold the row
// after the change.
func (w *world) streamReading(s *state) *reading {
	if s != w.now() || s.m.streamed.IsZero() {
		return nil
	}
	begin := s.m.streamed
	if first := w.states[0].from; first.After(begin) {
		begin = first
	}
	var involved set
	return &reading{
		what: "the change stream from " + begin.Format(time.RFC3339Nano), involves: func(*model) set { return involved.and(changeStream) },
		want: func(*model) []string { return nil },
		get: func(at time.Time) ([][]cell, error) {
			if at.IsZero() {
				at = w.strong()
			}
			records, err := w.records(begin, at)
			if err != nil {
				return nil, err
			}
			involved, err = w.compareRecords(records, begin, at)
			return nil, err
		},
	}
}

// compareRecords compares records with the history, and returns the features of the rows in the records.
func (w *world) compareRecords(records []streamRecord, begin, end time.Time) (involved set, err error) {
	for i, s := range w.states {
		if i == 0 || !s.from.After(begin) || s.from.After(end) {
			continue
		}
		before := w.states[i-1]
		recorded := map[string]bool{}
		for len(records) > 0 && !records[0].at.After(s.from) {
			r := records[0]
			t := s.m.table(r.table)
			if t == nil {
				return involved, fmt.Errorf("a record of an unknown table: %+v", r)
			}
			key := r.key(t)
			last := !slices.ContainsFunc(records[1:], func(o streamRecord) bool { return !o.at.After(s.from) && o.table == r.table && o.key(t) == key })
			records = records[1:]
			recorded[r.table+" "+key] = true
			if !last {
				continue
			}
			row := t.rows[key]
			if (row == nil) != (r.op == "DELETE") {
				return involved, fmt.Errorf("%+v, and after it the row is %v", r, row)
			}
			if row == nil {
				continue
			}
			involved = involved.with(row.features).with(t.features)
			for _, c := range t.writable() {
				if t.inKey(c.name) {
					continue
				}
				v, ok := r.news[c.name]
				if got := jsonCell(c.kind, v); !ok || got != row.cells[c.name] {
					return involved, fmt.Errorf("%+v, and after it %s is %s", r, c.name, row.cells[c.name])
				}
				involved = involved.with(c.features)
			}
		}
		if missing := missingRecord(before.m, s.m, recorded); missing != "" && !s.changed {
			return involved, fmt.Errorf("no record tells what has become of %s at %s", missing, s.from.Format(time.RFC3339Nano))
		}
	}
	return involved, nil
}

// missingRecord returns a row that differs between two states but has no record; "" if there is no such row.
func missingRecord(before, after *model, recorded map[string]bool) string {
	for _, t := range after.tables {
		was := before.table(t.name)
		if was == nil {
			continue
		}
		for _, key := range slices.Concat(sortedKeys(was.rows), sortedKeys(t.rows)) {
			a, b := was.rows[key], t.rows[key]
			if name := t.name + " " + key; !recorded[name] && a != b && (a == nil || b == nil || fmt.Sprint(a.cells) != fmt.Sprint(b.cells)) {
				return name
			}
		}
	}
	return ""
}

func jsonCell(k *kind, v any) cell {
	switch v := v.(type) {
	case nil:
		return cell{}
	case bool:
		return textCell(fmt.Sprint(v))
	case json.Number:
		if k == floatKind {
			return floatCell(textCell(v.String()).float())
		}
		return textCell(v.String())
	case string:
		if k == timeKind {
			return timeCell(textCell(v).time())
		}
		return textCell(v)
	}
	return textCell(fmt.Sprint(v))
}

// records reads the records of all partitions of the stream between two timestamps.
func (w *world) records(begin, end time.Time) (all []streamRecord, err error) {
	type partition struct {
		token string
		from  time.Time
	}
	todo, visited := []partition{{"", begin}}, map[string]bool{"": true}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		token := "NULL"
		if p.token != "" {
			token = "'" + p.token + "'"
		}
		rows, err := w.stream(fmt.Sprintf("SELECT ChangeRecord FROM READ_Every(TIMESTAMP '%s', TIMESTAMP '%s', %s, 300000)", p.from.UTC().Format(time.RFC3339Nano), end.UTC().Format(time.RFC3339Nano), token))
		if err != nil {
			return nil, err
		}
		for _, v := range rows {
			for _, part := range elements(v) {
				lists := elements(part)
				for _, r := range elements(lists[0]) {
					records, err := recordsOf(elements(r))
					if err != nil {
						return nil, err
					}
					all = append(all, records...)
				}
				for _, r := range elements(lists[2]) {
					f := elements(r)
					from := textCell(f[0].GetStringValue()).time()
					for _, c := range elements(f[2]) {
						if name := elements(c)[0].GetStringValue(); !visited[name] {
							visited[name] = true
							todo = append(todo, partition{name, from})
						}
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b streamRecord) int {
		if n := a.at.Compare(b.at); n != 0 {
			return n
		}
		return strings.Compare(a.sequence, b.sequence)
	})
	return all, nil
}

func elements(v *structpb.Value) []*structpb.Value { return v.GetListValue().GetValues() }

func recordsOf(f []*structpb.Value) (list []streamRecord, err error) {
	object := func(v *structpb.Value) (m map[string]any) {
		d := json.NewDecoder(strings.NewReader(v.GetStringValue()))
		d.UseNumber()
		if e := d.Decode(&m); e != nil {
			err = fmt.Errorf("%s: %w", v.GetStringValue(), e)
		}
		return m
	}
	for _, m := range elements(f[6]) {
		e := elements(m)
		list = append(list, streamRecord{
			at: textCell(f[0].GetStringValue()).time(), sequence: f[1].GetStringValue(), table: f[4].GetStringValue(), op: f[7].GetStringValue(), keys: object(e[0]), news: object(e[1]),
		})
	}
	return list, err
}

// stream runs a query with ExecuteStreamingSql and returns the values of its only column.
func (w *world) stream(text string) (values []*structpb.Value, err error) {
	session, err := w.sessionOf(w.ctx, "")
	if err != nil {
		return nil, err
	}
	s, err := w.data.ExecuteStreamingSql(w.ctx, &spannerpb.ExecuteSqlRequest{Session: session, Sql: text})
	if err != nil {
		return nil, err
	}
	for {
		p, err := s.Recv()
		if err == io.EOF {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		if p.ChunkedValue {
			return nil, fmt.Errorf("a value in chunks")
		}
		values = append(values, p.Values...)
	}
}
