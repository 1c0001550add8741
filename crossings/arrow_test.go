package crossings

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

const (
	flightLoad = "Flight load"
	flightSQL  = "Flight SQL"
	flightRead = "READ over Flight"
	imported   = "import"
	exported   = "export"
)

func init() {
	add(feature{name: flightLoad, write: (*world).loadFlight})
	add(feature{name: flightSQL, alone: true, read: func(w *world, s *state) *reading { return w.flightReading(s.m, false) }})
	add(feature{name: flightRead, alone: true, read: func(w *world, s *state) *reading { return w.flightReading(s.m, true) }})
	add(feature{name: imported, write: (*world).importFile})
	add(feature{name: exported, alone: true, read: func(w *world, s *state) *reading { return w.exportReading(s.m) }})
}

// flightContext returns a context with the Flight headers that name the database. The headers ask for timestamps in
// microseconds, since a timestamp in nanoseconds cannot hold the extreme values.
func (w *world) flightContext(headers ...string) context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, append([]string{"database", databaseName, "timestamp-unit", "us"}, headers...)...)
}

// arrowCell returns value i of an array.
func arrowCell(a arrow.Array, i int) (cell, error) {
	if a.IsNull(i) {
		return cell{}, nil
	}
	switch a := a.(type) {
	case *array.Int64:
		return intCell(a.Value(i)), nil
	case *array.Float64:
		return floatCell(a.Value(i)), nil
	case *array.Boolean:
		return textCell(strconv.FormatBool(a.Value(i))), nil
	case *array.String:
		return textCell(a.Value(i)), nil
	case *array.Binary:
		return textCell(base64.StdEncoding.EncodeToString(a.Value(i))), nil
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return timeCell(a.Value(i).ToTime(unit)), nil
	case *array.Decimal128:
		text := a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
		if strings.Contains(text, ".") {
			text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		}
		return textCell(text), nil
	}
	return cell{}, fmt.Errorf("an array of %s", a.DataType())
}

func cellsOfBatch(b arrow.RecordBatch) (rows [][]cell, err error) {
	for i := range int(b.NumRows()) {
		var cells []cell
		for _, col := range b.Columns() {
			c, err := arrowCell(col, i)
			if err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

// microseconds rounds the timestamps in rows down to microseconds.
func (g *target) microseconds(rows [][]cell) {
	for i, name := range g.columns {
		if g.t.column(name).kind != timeKind {
			continue
		}
		for _, cells := range rows {
			if cells[i].set {
				cells[i] = timeCell(cells[i].time().Truncate(time.Microsecond))
			}
		}
	}
}

// wantMicroseconds returns the target's rows in the model as text, with timestamps rounded down to microseconds.
func (g *target) wantMicroseconds(m *model) []string {
	t := m.table(g.t.name)
	var rows [][]cell
	for _, r := range g.rows(m) {
		cells := make([]cell, len(g.columns))
		for i, name := range g.columns {
			cells[i] = m.value(t, r, name)
		}
		rows = append(rows, cells)
	}
	g.microseconds(rows)
	return lines(rows)
}

// flightReading returns a reading over Arrow Flight. If read is true, it sends a READ, and otherwise a query.
func (w *world) flightReading(m *model, read bool) *reading {
	g := w.target(m)
	text, involved, way := g.sql(hint(w.rng)), w.targetFeatures(g), flightSQL
	if read {
		way, g.where = flightRead, nil
		text = "READ of " + g.name + " " + strings.Join(g.columns, ", ")
	}
	parts := fmt.Sprint(1 + w.rng.IntN(3))
	return &reading{
		what: "over Flight, " + text, want: g.wantMicroseconds, involves: func(m *model) set { return involved(m).and(way) },
		get: func(at time.Time) (rows [][]cell, err error) {
			session, err := w.sessionOf(w.ctx, "")
			if err != nil {
				return nil, err
			}
			var command proto.Message = &spannerpb.ExecuteSqlRequest{Session: session, Transaction: selectorAt(at), Sql: text}
			if read {
				command = &spannerpb.ReadRequest{Session: session, Transaction: selectorAt(at), Table: g.name, Columns: g.columns, KeySet: &spannerpb.KeySet{All: true}}
			}
			packed, err := anypb.New(command)
			if err != nil {
				return nil, err
			}
			data, err := proto.Marshal(packed)
			if err != nil {
				return nil, err
			}
			var info *flight.FlightInfo
			if ctx := w.flightContext("max-partitions", parts); at.IsZero() && !read {
				info, err = w.flightSQL.Execute(ctx, text)
			} else {
				info, err = w.flightSQL.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: data})
			}
			if err != nil {
				return nil, err
			}
			for _, e := range info.Endpoint {
				part, err := w.ticket(e.Ticket)
				if err != nil {
					return nil, err
				}
				rows = append(rows, part...)
			}
			return rows, nil
		},
	}
}

func (w *world) ticket(t *flight.Ticket) (rows [][]cell, err error) {
	r, err := w.flightSQL.DoGet(w.ctx, t)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	for r.Next() {
		part, err := cellsOfBatch(r.RecordBatch())
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, r.Err()
}

// batches returns the rows of an operation as Arrow record batches: all rows in one batch, or one batch for each row.
// Timestamps are text.
func (w *world) batches(o *operation) (list []arrow.RecordBatch, err error) {
	t := w.now().m.table(o.table)
	var fields []arrow.Field
	for _, name := range o.columns {
		f, err := arrowtype.Field(name, t.column(name).kind.spannerType(), "", true, arrowtype.Text)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	parts := [][][]cell{o.rows}
	if w.rng.IntN(2) == 0 {
		parts = nil
		for i := range o.rows {
			parts = append(parts, o.rows[i:i+1])
		}
	}
	schema := arrow.NewSchema(fields, nil)
	for _, rows := range parts {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i, name := range o.columns {
			k := t.column(name).kind
			a, err := arrowtype.NewAppender(b.Field(i), k.spannerType())
			if err != nil {
				return nil, err
			}
			for _, cells := range rows {
				if err := a.AppendWire(k.wire(cells[i])); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, b.NewRecordBatch())
	}
	return list, nil
}

// rowsToLoad returns a random write of rows without commit timestamps; nil if none is possible. Such rows can be loaded
// over Flight or from a file.
func (w *world) rowsToLoad(way string, atomic bool, kinds ...verb) *write {
	x := w.operationsOf(1, way, atomic, kinds...)
	if x == nil {
		return nil
	}
	x.untimed = true
	for _, cells := range x.operations[0].rows {
		for i, c := range cells {
			if c == commitTime {
				cells[i] = cell{}
			}
		}
	}
	return x
}

var loadModes = map[verb]string{insert: "insert", insertOrUpdate: "insert-or-update", replace: "replace"}

func (w *world) loadFlight() *write {
	x := w.rowsToLoad(flightLoad, true, insert, insertOrUpdate, replace)
	if x == nil {
		return nil
	}
	x.run = func() (at time.Time, err error) {
		o := x.operations[0]
		list, err := w.batches(o)
		if err != nil {
			return at, err
		}
		r, err := array.NewRecordReader(list[0].Schema(), list)
		if err != nil {
			return at, err
		}
		options := &flightsql.ExecuteIngestOpts{Table: o.table, TableDefinitionOptions: &flightsql.TableDefinitionOptions{
			IfExists: flightsql.TableDefinitionOptionsTableExistsOptionAppend, IfNotExist: flightsql.TableDefinitionOptionsTableNotExistOptionFail}}
		if schema := schemaOf(o.table); schema != "" {
			name := strings.TrimSuffix(schema, ".")
			options.Schema, options.Table = &name, strings.TrimPrefix(o.table, schema)
		}
		_, err = w.flightSQL.ExecuteIngest(w.flightContext("ingest-mode", loadModes[o.verb], "ingest-commits", "one"), r, options)
		return w.strong(), err
	}
	return x
}

// tempDir makes a directory on the machine's disk, for files of exports and imports. remove deletes it.
func (w *world) tempDir() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "crossings")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// importFile returns a write that puts rows into a file and imports the file.
func (w *world) importFile() *write {
	x := w.rowsToLoad(imported, false, insert, insertOrUpdate, replace)
	if x == nil || len(w.open) > 0 {
		return nil
	}
	format, over := pick(w.rng, file.Formats), w.rng.IntN(2) == 0
	x.way = fmt.Sprintf("%s, %s, over Flight %t", imported, format, over)
	x.run = func() (at time.Time, err error) {
		dir, remove, err := w.tempDir()
		if err != nil {
			return at, err
		}
		defer remove()
		o := x.operations[0]
		list, err := w.batches(o)
		if err != nil {
			return at, err
		}
		var data bytes.Buffer
		to, err := file.NewWriter(&data, format, list[0].Schema())
		if err != nil {
			return at, err
		}
		for _, b := range list {
			err = errors.Join(err, to.Write(b))
		}
		name := filepath.Join(dir, "rows."+string(format))
		if err = errors.Join(err, to.Close()); err == nil {
			err = os.WriteFile(name, data.Bytes(), 0o600)
		}
		if err != nil {
			return at, err
		}
		client, err := w.spanner(w.ctx)
		if err != nil {
			return at, err
		}
		info, err := bulk.Describe(w.ctx, client, o.table)
		if err != nil {
			return at, err
		}
		schema, err := info.Schema(arrowtype.Text)
		if err != nil {
			return at, err
		}
		schema = withColumns(schema, o.columns)
		source, err := file.Open([]string{name}, file.Options{Schema: schema})
		if err != nil {
			return at, err
		}
		defer source.Close()
		options := transfer.ImportOptions{Client: client, Table: info, Source: source, Mode: transfer.Mode(loadModes[o.verb]), Parallel: 1, Progress: &transfer.Progress{}}
		if over {
			options.Flight = w.conn
		}
		result, err := transfer.Import(w.ctx, options)
		if err == nil && result.Rows != int64(len(o.rows)) {
			err = fmt.Errorf("%d rows of %d", result.Rows, len(o.rows))
		}
		return w.strong(), err
	}
	return x
}

// withColumns returns a schema that has only the named columns of another schema.
func withColumns(of *arrow.Schema, names []string) *arrow.Schema {
	var fields []arrow.Field
	for _, name := range names {
		f, _ := of.FieldsByName(name)
		fields = append(fields, f...)
	}
	return arrow.NewSchema(fields, nil)
}

// exportReading returns a reading that exports a table and then reads the rows from the exported files.
func (w *world) exportReading(m *model) *reading {
	g := &target{t: pick(w.rng, m.tables)}
	for _, c := range g.t.writable() { // computed columns are not exported
		g.columns = append(g.columns, c.name)
	}
	if g.name = g.t.name; !sameColumns(g.t, w.now().m.table(g.name)) { // an export uses the present columns, not those at an older timestamp
		return nil
	}
	format, over, involved := pick(w.rng, file.Formats), w.rng.IntN(2) == 0, w.targetFeatures(g)
	return &reading{
		what: fmt.Sprintf("export of %s, %s, over Flight %t", g.name, format, over), want: g.wantMicroseconds,
		involves: func(m *model) set { return involved(m).and(exported) },
		get: func(at time.Time) (rows [][]cell, err error) {
			dir, remove, err := w.tempDir()
			if err != nil {
				return nil, err
			}
			defer remove()
			client, err := w.spanner(w.ctx)
			if err != nil {
				return nil, err
			}
			o := transfer.ExportOptions{Client: client, Database: databaseName, Tables: []string{g.name}, Dir: dir, Format: format, Timestamps: arrowtype.Microseconds,
				Bound: spanner.StrongRead(), Parallel: 1, Progress: &transfer.Progress{}}
			if !at.IsZero() {
				o.Bound = spanner.ReadTimestamp(at)
			}
			if over {
				o.Flight = w.conn
			}
			if _, err := transfer.Export(w.ctx, o); err != nil {
				return nil, err
			}
			info, err := bulk.Describe(w.ctx, client, g.name)
			if err != nil {
				return nil, err
			}
			schema, err := info.Schema(arrowtype.Microseconds)
			if err != nil {
				return nil, err
			}
			source, err := file.Open([]string{filepath.Join(dir, g.name+"-*")}, file.Options{Format: format, Schema: withColumns(schema, g.columns)})
			if err != nil {
				return nil, err
			}
			defer source.Close()
			var mu sync.Mutex
			err = bulk.Each(w.ctx, source, 1, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
				mu.Lock()
				defer mu.Unlock()
				part, err := cellsOfBatch(batch)
				rows = append(rows, part...)
				return err
			})
			return rows, err
		},
	}
}

func sameColumns(a, b *table) bool {
	return b != nil && slices.EqualFunc(a.columns, b.columns, func(x, y *column) bool { return x.name == y.name && x.kind == y.kind })
}
