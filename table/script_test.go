package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestScripts checks the output of the scripts in testdata/scripts. Commands:
//
//	ddl                                   runs DDL statements, which are separated by ;
//	commit [quiet] [open]                 commits mutations, one per line: OP table (columns) [row]..., or
//	                                      delete table keys...
//	dml [quiet] [open]                    runs one DML statement. Each line changes one row: insert, insert_or_ignore or
//	                                      insert_or_update table (columns) [row]; update table (columns) [values] [key];
//	                                      delete table [key]
//	read table[@index] column... [limit=n] [reverse] [pending]   prints the rows of a key set
//	spans table[@index]                   prints the spans of a key set
//	fill table@index                      makes the entries of an index
//	fillcolumn table column               fills a new column
//	validate table[@index] KIND [column]  checks existing rows or entries (see validationKinds)
//	expired table before=time             prints the range that is searched for expired rows, and those rows
//	expire table before=time [bytes=n]    deletes the rows that the last "expired" command has found
//	dump                                  prints all keys and values
//
// An item of a key set is the word all, a key such as [1, "a"], or a range such as [1] .. (2), where brackets mark
// closed ends and parentheses open ends. The argument quiet suppresses the list of writes. With the argument open,
// commit timestamps stay pending. The writes of a failed commit or dml are undone.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			if err := s.run(d); err != nil {
				s.out.WriteString(describe(err))
			}
			return s.out.String()
		})
	})
}

func describe(err error) string {
	var e *usererror.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s: %s\n", e.Code, e.Message)
	}
	return fmt.Sprintf("error: %v\n", err)
}

type script struct {
	catalog *schema.Catalog
	sql     tinySQL
	m       *mapWriter
	ts      mvcc.Timestamp
	found   []Expired // the rows that the last "expired" command has found
	out     strings.Builder
}

func newScript() *script {
	return &script{catalog: schema.NewCatalog(), sql: tinySQL{next: new(int64)}, m: newMemory(), ts: mvcc.TimestampOf(testNow)}
}

func (s *script) ddl(statements string) error {
	for _, stmt := range strings.Split(statements, ";") {
		if stmt = strings.TrimSpace(stmt); stmt == "" {
			continue
		}
		c, _, err := s.catalog.Apply(stmt, s.sql)
		if err != nil {
			return err
		}
		s.catalog = c
	}
	return nil
}

func (s *script) run(d *datadriven.TestData) error {
	ctx := context.Background()
	switch d.Cmd {
	case "ddl":
		return s.ddl(d.Input)
	case "commit":
		return s.commit(ctx, d)
	case "dml":
		return s.dml(ctx, d)
	case "read":
		return s.read(ctx, d)
	case "spans":
		return s.spans(d)
	case "fill", "validate", "fillcolumn":
		return s.change(ctx, d)
	case "expired":
		return s.expired(ctx, d)
	case "expire":
		return s.expire(ctx, d)
	case "dump":
		s.m.rows.Scan(func(k, v string) bool {
			s.print("", []byte(k), []byte(v))
			return true
		})
		return nil
	}
	return fmt.Errorf("unknown command %s", d.Cmd)
}

// settle runs f as one transaction, prints its writes, and commits them.
func (s *script) settle(d *datadriven.TestData, f func() error) error {
	if !d.HasArg("quiet") {
		s.m.trace = s.print
	}
	err := s.m.attempt(f)
	s.m.trace = nil
	s.ts++
	if err == nil && !d.HasArg("open") {
		s.m.commit(s.ts)
	}
	return err
}

func (s *script) commit(ctx context.Context, d *datadriven.TestData) error {
	var muts []Mutation
	for _, line := range strings.Split(d.Input, "\n") {
		m, err := s.mutation(line)
		if err != nil {
			return err
		}
		muts = append(muts, m)
	}
	var changes *Changes
	err := s.settle(d, func() (err error) {
		changes, err = Apply(ctx, s.m, NewDescriptors(s.catalog), muts, testNow)
		return err
	})
	if err == nil {
		fmt.Fprintf(&s.out, "mutations: %d\n", changes.Count())
	}
	return err
}

var opNames = map[string]Op{"insert": Insert, "update": Update, "insert_or_update": InsertOrUpdate, "replace": Replace, "delete": Delete}

func (s *script) mutation(line string) (m Mutation, err error) {
	p := &lineParser{rest: line}
	op := p.word()
	m.Op = opNames[op]
	if m.Table = s.catalog.Table(p.word()); m.Table == nil {
		return m, fmt.Errorf("no table in %q", line)
	}
	if m.Op == Delete {
		m.Keys, err = p.keySet(TableLayout(m.Table))
		return m, err
	}
	m.Columns = p.columns(m.Table)
	for !p.done() {
		row, err := p.row(m.Columns)
		if err != nil {
			return m, err
		}
		m.Rows = append(m.Rows, row)
	}
	return m, nil
}

func (s *script) dml(ctx context.Context, d *datadriven.TestData) error {
	c := NewChanges(s.m, NewDescriptors(s.catalog), testNow)
	err := s.settle(d, func() error {
		for _, line := range strings.Split(d.Input, "\n") {
			if err := s.dmlLine(ctx, c, line); err != nil {
				return err
			}
		}
		return c.Finish(ctx)
	})
	if err == nil {
		fmt.Fprintf(&s.out, "mutations: %d\n", c.Count())
	}
	return err
}

func (s *script) dmlLine(ctx context.Context, c *Changes, line string) error {
	p := &lineParser{rest: line}
	op := p.word()
	t := s.catalog.Table(p.word())
	if t == nil {
		return fmt.Errorf("no table in %q", line)
	}
	if op == "delete" {
		old, err := s.stored(ctx, c, t, p)
		if err != nil {
			return err
		}
		return c.Delete(ctx, t, old)
	}
	columns := p.columns(t)
	vals, err := p.row(columns)
	if err != nil {
		return err
	}
	var row []value.Value
	done := true
	switch op {
	case "insert":
		row, err = c.Insert(ctx, t, columns, vals)
	case "insert_or_ignore":
		row, done, err = c.InsertOrIgnore(ctx, t, columns, vals)
	case "insert_or_update":
		row, done, err = c.InsertOrUpdate(ctx, t, columns, vals)
	case "update":
		old, err := s.stored(ctx, c, t, p)
		if err != nil {
			return err
		}
		if row, err = c.Update(ctx, t, old, columns, vals); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(&s.out, "%v", done)
	for i, v := range row {
		fmt.Fprintf(&s.out, " %s=%s", t.Columns[i].Name, show(v, t.Columns[i].Type))
	}
	s.out.WriteByte('\n')
	return nil
}

func (s *script) stored(ctx context.Context, c *Changes, t *schema.Table, p *lineParser) (Stored, error) {
	l := TableLayout(t)
	key, err := p.row(keyColumnsOf(l))
	if err != nil {
		return Stored{}, err
	}
	old, ok, err := c.Get(ctx, l.AppendKey(nil, key))
	if err == nil && !ok {
		err = fmt.Errorf("no such row")
	}
	return old, err
}

func keyColumnsOf(l *Layout) []*schema.Column {
	var columns []*schema.Column
	for _, p := range l.Key {
		columns = append(columns, p.Column)
	}
	return columns
}

// object returns the table, the index (nil for a table) and the layout that belong to a name. The name has the form
// "table" or "table@index".
func (s *script) object(name string) (*schema.Table, *schema.Index, *Layout) {
	name, index, ok := strings.Cut(name, "@")
	t := s.catalog.Table(name)
	if ok {
		x := t.Index(index)
		return t, x, IndexLayout(x)
	}
	return t, nil, TableLayout(t)
}

func (s *script) read(ctx context.Context, d *datadriven.TestData) error {
	t, x, l := s.object(d.CmdArgs[0].Key)
	var columns []*schema.Column
	for _, arg := range d.CmdArgs[1:] {
		if c := t.Column(arg.Key); c != nil {
			columns = append(columns, c)
		}
	}
	p, err := NewProjection(t, x, columns)
	if err != nil {
		return err
	}
	r := Read{Projection: p, Reverse: d.HasArg("reverse"), AllowPending: d.HasArg("pending")}
	if d.HasArg("limit") {
		r.Limit = limitOf(d)
	}
	ks, err := (&lineParser{rest: strings.ReplaceAll(d.Input, "\n", " ")}).keySet(l)
	if err != nil {
		return err
	}
	if r.Spans, err = l.Spans(ks); err != nil {
		return err
	}
	rows := r.Open(ctx, s.m)
	defer rows.Close()
	for {
		ok, err := rows.Next()
		if !ok || err != nil {
			return err
		}
		if err := s.showRow(rows, columns); err != nil {
			return err
		}
	}
}

// showRow prints the current row as AppendWire encodes it. It returns an error if Values gives other values.
func (s *script) showRow(rows *Rows, columns []*schema.Column) error {
	var set spannerpb.PartialResultSet
	if err := proto.Unmarshal(rows.AppendWire(nil), &set); err != nil {
		return err
	}
	vals := rows.Values(nil)
	for i, c := range columns {
		var again structpb.Value
		if err := proto.Unmarshal(vals[i].AppendWire(nil, c.Type), &again); err != nil {
			return err
		}
		if !proto.Equal(&again, set.Values[i]) {
			return fmt.Errorf("wire %v, value %v", set.Values[i], &again)
		}
		fmt.Fprintf(&s.out, "%s ", show(vals[i], c.Type))
	}
	s.out.WriteByte('\n')
	return nil
}

func (s *script) spans(d *datadriven.TestData) error {
	_, _, l := s.object(d.CmdArgs[0].Key)
	ks, err := (&lineParser{rest: strings.ReplaceAll(d.Input, "\n", " ")}).keySet(l)
	if err != nil {
		return err
	}
	spans, err := l.Spans(ks)
	for _, span := range spans {
		if span.IsPoint() {
			fmt.Fprintf(&s.out, "%x\n", span.Start)
		} else {
			fmt.Fprintf(&s.out, "%x - %x\n", span.Start, span.End)
		}
	}
	return err
}

var validationKinds = map[string]schema.ValidationKind{
	"not-null": schema.ValidateNotNull, "length": schema.ValidateLength, "utf8": schema.ValidateUTF8,
	"commit-timestamp": schema.ValidateCommitTimestamp, "check": schema.ValidateCheck,
	"parents": schema.ValidateParents, "foreign-key": schema.ValidateForeignKey, "unique": schema.ValidateUnique,
}

// change runs a step of a schema change in chunks of two rows, until no rows are left.
func (s *script) change(ctx context.Context, d *datadriven.TestData) error {
	limits := Limits{Rows: 2, Bytes: ChunkBytes}
	t, x, _ := s.object(d.CmdArgs[0].Key)
	step := func(after []byte) (Chunk, error) {
		if d.Cmd == "validate" {
			return Validate(ctx, s.m, s.validation(t, x, d), testNow, after, limits)
		}
		if d.Cmd == "fill" {
			return s.fill(ctx, x, after)
		}
		c, err := FindChunk(ctx, s.m, TableLayout(t), after, limits)
		if err != nil || c.Rows == 0 {
			return c, err
		}
		return c, FillColumns(ctx, s.m, NewDescriptors(s.catalog), t, []*schema.Column{t.Column(d.CmdArgs[1].Key)}, testNow, c)
	}
	return s.settle(d, func() error {
		c, err := step(nil)
		chunks := 1
		for ; err == nil && c.More; chunks++ {
			c, err = step(c.Last)
		}
		if err == nil {
			fmt.Fprintf(&s.out, "chunks: %d\n", chunks)
		}
		return err
	})
}

// fill writes the entries of index x for the next two rows.
func (s *script) fill(ctx context.Context, x *schema.Index, after []byte) (c Chunk, err error) {
	entries, err := MakeEntries(ctx, s.m, x, after)
	if err != nil {
		return c, err
	}
	defer entries.Close()
	for c.Rows < 2 {
		ok, err := entries.Next()
		if !ok || err != nil {
			return c, err
		}
		key, val, ok, err := entries.Entry()
		if ok {
			err = s.m.Put(ctx, key, val, nil, nil)
		}
		if err != nil {
			return c, err
		}
		c.Rows++
		c.Last = bytes.Clone(entries.RowKey())
	}
	c.More = true
	return c, nil
}

func (s *script) expired(ctx context.Context, d *datadriven.TestData) error {
	t, before, err := s.policy(d)
	if err != nil {
		return err
	}
	e, err := newExpiry(t, value.OfTime(before))
	if err != nil {
		return err
	}
	fmt.Fprintf(&s.out, "%s %x - %x\n", e.Name(), e.spans[0].Start, e.spans[0].End)
	s.found = nil
	var c Chunk
	for chunks := 1; ; chunks++ {
		var found []Expired
		if found, c, err = FindExpired(ctx, s.m, t, before, c.Last, Limits{Rows: 2, Bytes: ChunkBytes}); err != nil {
			return err
		}
		s.found = append(s.found, found...)
		if !c.More {
			for _, r := range s.found {
				fmt.Fprintf(&s.out, "%s %s\n", TableLayout(t).storedText(r.Key), r.At.Format(time.RFC3339Nano))
			}
			fmt.Fprintf(&s.out, "chunks: %d\n", chunks)
			return nil
		}
	}
}

func (s *script) expire(ctx context.Context, d *datadriven.TestData) error {
	t, before, err := s.policy(d)
	if err != nil {
		return err
	}
	bytes := int64(MaxCommitBytes)
	if n := argOf(d, "bytes"); n != "" {
		if bytes, err = strconv.ParseInt(n, 10, 64); err != nil {
			return err
		}
	}
	return s.settle(d, func() error {
		deleted, err := DeleteExpired(ctx, s.m, NewDescriptors(s.catalog), t, before, s.found, bytes)
		if err == nil {
			fmt.Fprintf(&s.out, "deleted: %d\n", deleted)
		}
		return err
	})
}

func (s *script) policy(d *datadriven.TestData) (*schema.Table, time.Time, error) {
	before, err := time.Parse(time.RFC3339, argOf(d, "before"))
	return s.catalog.Table(d.CmdArgs[0].Key), before, err
}

// argOf returns the value of a command's argument, or "".
func argOf(d *datadriven.TestData, name string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == name && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return ""
}

func (s *script) validation(t *schema.Table, x *schema.Index, d *datadriven.TestData) schema.Validation {
	v := schema.Validation{Kind: validationKinds[d.CmdArgs[1].Key], Table: t, Index: x}
	if len(d.CmdArgs) > 2 {
		v.Column = t.Column(d.CmdArgs[2].Key)
		v.Old = v.Column
	}
	switch v.Kind {
	case schema.ValidateCheck:
		v.Check = t.Checks[0]
	case schema.ValidateForeignKey:
		v.ForeignKey = t.ForeignKeys[0]
	}
	return v
}

// print shows a key and value, both decoded and as bytes.
func (s *script) print(op string, key, val []byte) {
	fmt.Fprintf(&s.out, "%s%s%s\n    %x", op, map[bool]string{true: " "}[op != ""], s.decode(key, val), key)
	if op != "delete" {
		fmt.Fprintf(&s.out, " = %x", val)
	}
	s.out.WriteByte('\n')
}

func (s *script) decode(key, val []byte) string {
	for t := range s.catalog.Tables() {
		if text, ok := decodeIn(t, nil, key, val); ok {
			return text
		}
		for _, x := range t.Indexes {
			if text, ok := decodeIn(t, x, key, val); ok {
				return text
			}
		}
	}
	return "?"
}

func decodeIn(t *schema.Table, x *schema.Index, key, val []byte) (string, bool) {
	l := TableLayout(t)
	columns := t.Columns
	if x != nil {
		l, columns = IndexLayout(x), x.Storing
	}
	parts, err := l.DecodeKey(nil, key)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	b.WriteString(l.Name() + keyText(parts))
	if len(val) == 0 {
		return b.String(), true
	}
	for _, c := range columns {
		if l.columns[c.Ordinal] >= 0 || x == nil && c.Generated != nil && !c.Stored {
			continue
		}
		var f [1]field
		if err := findFields(val, []schema.ColumnID{c.ID}, f[:]); err != nil {
			return err.Error(), true
		}
		if f[0].isNull() {
			continue
		}
		v, err := value.DecodeRow(f[0].of(val), c.Type)
		if err != nil {
			return err.Error(), true
		}
		fmt.Fprintf(&b, " %s=%s", c.Name, show(v, c.Type))
	}
	return b.String(), true
}

// show returns a value in its JSON form, or PENDING for a pending commit timestamp.
func show(v value.Value, t *value.Type) string {
	if v.IsPending() {
		return "PENDING"
	}
	var pv structpb.Value
	if err := proto.Unmarshal(v.AppendWire(nil, t), &pv); err != nil {
		return err.Error()
	}
	b, err := json.Marshal(pv.AsInterface())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// lineParser parses words, column lists and JSON arrays from the start of a line; rest holds what was not parsed yet.
type lineParser struct{ rest string }

func (p *lineParser) done() bool {
	p.rest = strings.TrimSpace(p.rest)
	return p.rest == ""
}

func (p *lineParser) word() string {
	w, rest, _ := strings.Cut(strings.TrimSpace(p.rest), " ")
	p.rest = rest
	return w
}

func (p *lineParser) columns(t *schema.Table) []*schema.Column {
	_, rest, _ := strings.Cut(p.rest, "(")
	names, rest, _ := strings.Cut(rest, ")")
	p.rest = rest
	var columns []*schema.Column
	for _, n := range strings.Split(names, ",") {
		columns = append(columns, t.Column(strings.TrimSpace(n)))
	}
	return columns
}

// json parses a JSON array. The text may have parentheses in place of the array's brackets; the result open is true if
// the text begins with a parenthesis.
func (p *lineParser) json() (items []any, open bool, err error) {
	p.done()
	text := p.rest
	open = strings.HasPrefix(text, "(")
	if open {
		at := strings.Index(text, ")")
		text = "[" + text[1:at] + "]" + text[at+1:]
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&items); err != nil {
		return nil, false, fmt.Errorf("%q: %w", text, err)
	}
	p.rest = text[dec.InputOffset():]
	return items, open, nil
}

func (p *lineParser) row(columns []*schema.Column) ([]value.Value, error) {
	items, _, err := p.json()
	if err != nil {
		return nil, err
	}
	return valuesOf(items, columns)
}

// valuesOf converts items of a JSON array to the types of columns. An item without a column becomes an INT64.
func valuesOf(items []any, columns []*schema.Column) ([]value.Value, error) {
	vals := make([]value.Value, len(items))
	for i, item := range items {
		t := value.Int64Type
		if i < len(columns) {
			t = columns[i].Type
		}
		pv, err := wireOf(item, t)
		if err != nil {
			return nil, err
		}
		if vals[i], err = value.FromWire(pv, t); err != nil {
			return nil, err
		}
	}
	return vals, nil
}

func wireOf(item any, t *value.Type) (*structpb.Value, error) {
	if list, ok := item.([]any); ok {
		var values []*structpb.Value
		for _, e := range list {
			pv, err := wireOf(e, t.Elem)
			if err != nil {
				return nil, err
			}
			values = append(values, pv)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: values}), nil
	}
	if n, ok := item.(json.Number); ok {
		if t.Kind != value.Float64 && t.Kind != value.Float32 {
			return structpb.NewStringValue(n.String()), nil
		}
		f, err := n.Float64()
		return structpb.NewNumberValue(f), err
	}
	if text, ok := item.(string); ok && strings.HasPrefix(text, "repeat ") {
		var what string
		var n int
		if _, err := fmt.Sscanf(text, "repeat %s %d", &what, &n); err != nil {
			return nil, err
		}
		return structpb.NewStringValue(strings.Repeat(what, n)), nil
	}
	return structpb.NewValue(item)
}

func (p *lineParser) keySet(l *Layout) (ks KeySet, err error) {
	columns := keyColumnsOf(l)
	for !p.done() {
		if rest, ok := strings.CutPrefix(p.rest, "all"); ok {
			ks.All, p.rest = true, rest
			continue
		}
		items, open, err := p.json()
		if err != nil {
			return ks, err
		}
		key, err := valuesOf(items, columns)
		if err != nil {
			return ks, err
		}
		p.done()
		rest, ok := strings.CutPrefix(p.rest, "..")
		if !ok {
			ks.Keys = append(ks.Keys, key)
			continue
		}
		p.rest = rest
		r := KeyRange{Start: key, StartOpen: open}
		if items, r.EndOpen, err = p.json(); err != nil {
			return ks, err
		}
		if r.End, err = valuesOf(items, columns); err != nil {
			return ks, err
		}
		ks.Ranges = append(ks.Ranges, r)
	}
	return ks, nil
}

func limitOf(d *datadriven.TestData) int64 {
	n, _ := strconv.ParseInt(argOf(d, "limit"), 10, 64)
	return n
}
