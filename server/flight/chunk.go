package flight

import (
	"errors"
	"sort"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A chunk is a group of consecutive rows that are written together: by one commit, or in a transaction by one batch of
// statements. The rows come from one batch of the client or from several small ones. A chunk has at most chunkBytes
// bytes. It has at most the rows of one commit (table.MaxMutations), or in a transaction at most batchStatements rows.
const (
	chunkBytes = 2 << 20
	// chunkFactor is how many bytes of memory a commit takes for each byte of a chunk: as columns, as keys and values,
	// and in the engine's batch. rowChunkFactor is how many bytes INSERT statements in a transaction take for each byte
	// of a chunk: as values and as parameters.
	chunkFactor    = 4
	rowChunkFactor = 16
)

// chunk collects the batches of rows that are written together.
type chunk struct {
	limit   int // the maximum number of rows
	batches []arrow.RecordBatch
	rows    int
	bytes   int64
	kept    int64           // bytes that the batches keep in memory, such as the whole messages to which they refer
	account *memory.Account // account that is charged for the batches; nil if there are none
}

// drop releases the batches and the memory charged for them.
func (c *chunk) drop() {
	for _, b := range c.batches {
		b.Release()
	}
	c.account.Close()
	*c = chunk{limit: c.limit}
}

// limitChunk sets how many rows a chunk can have.
func (g *ingestion) limitChunk() (err error) {
	g.chunk.limit = batchStatements
	if g.in == nil {
		g.chunk.limit, err = g.api.LoadLimit(g.load(nil))
	}
	return err
}

// keptBytes limits the memory of the messages that the batches of a chunk refer to. If they take more, addBatch writes
// the chunk before it is full. It does not do so if the client wants all rows in one commit.
const keptBytes = 4 * chunkBytes

// mostBytes is the maximum size of the rows of one batch in bytes, as batchBytes counts them. If the rows are larger,
// collect refuses them as too large for a commit. mostBytes is far above MaxCommitBytes, because batchBytes can count
// far more than the bytes of a commit: at least 16 bytes for an element of a list that takes one byte of a commit.
const mostBytes = table.MaxCommitBytes * 16

// addBatch adds the rows of a batch to the chunk, and writes each chunk that is full. size is the number of bytes that
// the batch keeps in memory (see upload.each).
func (g *ingestion) addBatch(batch arrow.RecordBatch, size int64) error {
	if err := g.addRows(batch); err != nil || g.chunk.rows == 0 {
		return err
	}
	if g.chunk.kept += size; g.chunk.kept > keptBytes && !g.whole {
		return g.flush()
	}
	return g.chunk.account.Grow(g.ctx, size)
}

func (g *ingestion) addRows(batch arrow.RecordBatch) error {
	rows := int(batch.NumRows())
	if rows == 0 {
		return nil
	}
	if g.whole {
		return g.collect(batch, 0, rows)
	}
	for from := 0; from < rows; {
		room, left := min(g.chunk.limit-g.chunk.rows, rows-from), chunkBytes-g.chunk.bytes
		n := sort.Search(room, func(n int) bool { return batchBytes(batch, from, from+n+1, left) > left })
		if n == 0 && g.chunk.rows > 0 {
			if err := g.flush(); err != nil {
				return err
			}
			continue
		}
		n = max(1, n)
		if err := g.collect(batch, from, from+n); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// batchBytes estimates the size in bytes of the rows of a batch with the indexes in [from, to). It may stop counting
// when the size exceeds its last argument.
func batchBytes(batch arrow.RecordBatch, from, to int, most int64) (n int64) {
	for _, col := range batch.Columns() {
		if n += columnar.BytesOf(col, from, to, most-n); n > most {
			break
		}
	}
	return n
}

// collect adds the rows [from, to) of a batch to the chunk, and charges the chunk's account for them. The charge for
// the message does not suffice, because it ends when the next message comes.
func (g *ingestion) collect(batch arrow.RecordBatch, from, to int) error {
	bytes := batchBytes(batch, from, to, mostBytes)
	if bytes > mostBytes {
		return usererror.CommitTooLarge(table.MaxCommitBytes)
	}
	part := batch.NewSlice(int64(from), int64(to))
	c := &g.chunk
	if c.account == nil {
		c.account = g.call.Memory.Beside(memory.Request)
	}
	c.batches = append(c.batches, part)
	c.rows += int(part.NumRows())
	c.bytes += bytes
	factor := int64(chunkFactor)
	if g.in != nil {
		factor = rowChunkFactor
	}
	return c.account.Grow(g.ctx, bytes*factor)
}

// flush writes the rows of the chunk.
func (g *ingestion) flush() (err error) {
	if g.chunk.rows == 0 {
		return nil
	}
	batch, err := joined(g.chunk.batches)
	if err != nil {
		return usererror.InvalidArrowData(err.Error())
	}
	defer batch.Release()
	if g.in != nil {
		err = g.insertChunk(batch)
	} else {
		err = g.commitChunk(batch)
	}
	if err != nil {
		return err
	}
	g.written += int64(g.chunk.rows)
	g.chunk.drop()
	return nil
}

// joined returns one batch with the rows of all batches. The caller must release it.
func joined(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(batches) == 1 {
		batches[0].Retain()
		return batches[0], nil
	}
	columns, rows := make([]arrow.Array, batches[0].NumCols()), int64(0)
	for i := range columns {
		parts := make([]arrow.Array, len(batches))
		for n, b := range batches {
			parts[n] = b.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, arrowmemory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	for _, b := range batches {
		rows += b.NumRows()
	}
	return array.NewRecordBatch(batches[0].Schema(), columns, rows), nil
}

// load returns the Load that writes a batch. A nil batch gives a Load without rows, for API.LoadLimit.
func (g *ingestion) load(batch arrow.RecordBatch) *Load {
	l := &Load{Session: g.session, Table: g.table, Op: g.op, Columns: g.columns}
	if batch == nil {
		return l
	}
	l.Rows = int(batch.NumRows())
	l.Source = func(i int, t *value.Type) (s value.Source, err error) {
		s, err = columnar.NewSource(batch.Column(i), t)
		var wrong *columnar.ConversionError
		switch {
		case errors.As(err, &wrong):
			return nil, usererror.IngestValue(g.columns[i], t.String(), g.written+int64(wrong.Row)+1, wrong.Err)
		case err != nil:
			return nil, usererror.InvalidArrowData(err.Error())
		}
		return s, nil
	}
	return l
}

// commitChunk commits the rows of a batch. If an older transaction aborts the commit, commitChunk tries again. It makes
// at most commitAttempts attempts.
func (g *ingestion) commitChunk(batch arrow.RecordBatch) (err error) {
	for range commitAttempts {
		if err = g.api.Load(g.ctx, g.load(batch), g.call); !usererror.IsAborted(err) {
			return err
		}
	}
	return err
}

// insertChunk writes the rows in the client's transaction, with INSERT statements.
func (g *ingestion) insertChunk(batch arrow.RecordBatch) error {
	names, marks := make([]string, len(g.columns)), make([]string, len(g.columns))
	types := make(map[string]*spannerpb.Type, len(g.columns))
	for i, name := range g.columns {
		param := "p" + strconv.Itoa(i+1)
		names[i], marks[i], types[param] = quoted(name), "@"+param, g.types[i].Proto()
	}
	verb := "INSERT INTO "
	if g.op == table.InsertOrUpdate {
		verb = "INSERT OR UPDATE INTO "
	}
	sql := verb + quoted(g.table) + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	req := &spannerpb.ExecuteBatchDmlRequest{Session: g.session, Transaction: g.in, Seqno: g.seqno.Add(1)}
	for row := range int(batch.NumRows()) {
		params := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(g.columns))}
		for i, col := range batch.Columns() {
			v, err := columnar.ValueAt(col, row, g.types[i])
			if err != nil {
				return usererror.IngestValue(g.columns[i], g.types[i].String(), g.written+int64(row)+1, err)
			}
			if params.Fields[marks[i][1:]], err = wireValue(v, g.types[i]); err != nil {
				return err
			}
		}
		req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: sql, Params: params, ParamTypes: types})
	}
	_, err := g.runBatch(g.ctx, req, g.call)
	return err
}
