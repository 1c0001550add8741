package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Copy is the copy of one table or index. Many goroutines may use it at once; those that write chunks do so one after the other.
type Copy struct {
	id   schema.TableID
	rows *mvcc.Versions
	last *atomic.Uint64 // the highest number of a chunk in the database, so that blobs of a copy that was dropped are not those of the next one
	limits

	writing sync.Mutex // held while chunks are replaced; guards dropped
	dropped bool

	mu       sync.Mutex
	dir      *directory // the newest
	readers  int
	dead     []*blobs // that no directory has which is the newest or in use
	sweeping int      // how many of these have been taken to be deleted
}

// limits are those of chunks and of runs. Tests have smaller ones.
type limits struct {
	maxRows  int   // of a chunk
	maxBytes int64 // of a chunk
	minSlice int   // see merge
	maxBatch int   // rows of a run that is not a slice of a chunk, about
}

var fullLimits = limits{maxRows: MaxRows, maxBytes: MaxBytes, minSlice: minSlice, maxBatch: maxMerged}

// directory is the chunks of a copy at a moment, in the order of their ranges. It does not change.
type directory struct {
	chunks  []*chunk
	readers int  // Copy.mu guards it
	old     bool // there is a newer one; Copy.mu guards it
}

// chunk is a range of keys, and the rows in it at a timestamp. It does not change; narrowing or renewing it makes another one of the same blobs.
type chunk struct {
	*blobs
	at         mvcc.Timestamp
	start, end []byte
	startCut   bool // the blobs have rows before start
}

// blobs is what is stored of the rows of a chunk.
type blobs struct {
	number      uint64
	rows        int64
	columns     []column
	damaged     atomic.Bool // a read has found them so
	unreadable  bool        // the record is not one: columns are unknown
	directories int         // that have it, and are the newest or in use; Copy.mu guards it
}

// column is a column of a chunk.
type column struct {
	ID         schema.ColumnID
	definition string // schema.Column.ComputedFrom: if it is another now, the blob is of no use
	stored     bool   // its values are stored payloads
	Size       int64  // bytes as Arrow's buffers
	Bytes      int64  // of the blob
}

func newCopy(c *Copies, id schema.TableID) *Copy {
	return &Copy{id: id, rows: c.rows, last: &c.last, limits: fullLimits, dir: new(directory)}
}

// ID is the number of the table or index.
func (c *Copy) ID() schema.TableID { return c.id }

// Chunk is what a copy's directory says of a chunk.
type Chunk struct {
	Number  uint64
	Span    table.Span
	At      mvcc.Timestamp
	Rows    int64 // at At; more than the span has if the chunk is being replaced in part
	Size    int64 // bytes as Arrow's buffers
	Bytes   int64 // as stored
	Columns []schema.ColumnID
	Damaged bool // a read has found it so. It is not read any more, and is to be written anew.
}

// Chunks are the chunks of the moment, in the order of their ranges.
func (c *Copy) Chunks() []Chunk {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	dir := c.dir
	c.mu.Unlock()
	list := make([]Chunk, len(dir.chunks))
	for i, ch := range dir.chunks {
		list[i] = ch.describe()
	}
	return list
}

func (c *chunk) describe() Chunk {
	d := Chunk{Number: c.number, Span: table.Span{Start: c.start, End: c.end}, At: c.at, Rows: c.rows, Damaged: c.damaged.Load()}
	for _, col := range c.columns {
		d.Columns = append(d.Columns, col.ID)
		d.Size += col.Size
		d.Bytes += col.Bytes
	}
	return d
}

// covering are the chunks that overlap [start, end).
func (d *directory) covering(start, end []byte) []*chunk {
	from, _ := slices.BinarySearchFunc(d.chunks, start, func(c *chunk, start []byte) int {
		if bytes.Compare(c.end, start) <= 0 {
			return -1
		}
		return 1
	})
	to := from
	for to < len(d.chunks) && bytes.Compare(d.chunks[to].start, end) < 0 {
		to++
	}
	return d.chunks[from:to]
}

// acquire takes the newest directory, whose blobs are kept until release.
func (c *Copy) acquire() *directory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers++
	c.dir.readers++
	return c.dir
}

// release lets go of a directory, and deletes the blobs that no other one has.
func (c *Copy) release(d *directory) {
	c.mu.Lock()
	c.readers--
	d.readers--
	c.forget(d)
	c.mu.Unlock()
	_ = c.sweep() // what a full disk refuses is for the next sweep, or start
}

// publish makes a directory of chunks the newest. It uses their memory.
func (c *Copy) publish(chunks []*chunk) {
	slices.SortFunc(chunks, func(a, b *chunk) int { return bytes.Compare(a.start, b.start) })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range chunks {
		ch.directories++
	}
	before := c.dir
	before.old, c.dir = true, &directory{chunks: chunks}
	c.forget(before)
}

// forget lets go of the blobs of a directory that is neither the newest nor in use.
func (c *Copy) forget(d *directory) {
	if !d.old || d.readers > 0 {
		return
	}
	for _, ch := range d.chunks {
		if ch.directories--; ch.directories == 0 {
			c.dead = append(c.dead, ch.blobs)
		}
	}
}

// gone says, of a copy that was dropped, whether nothing is left of it.
func (c *Copy) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readers == 0 && len(c.dead) == 0 && c.sweeping == 0
}

// sweep deletes the blobs that no directory has any more.
func (c *Copy) sweep() error {
	c.mu.Lock()
	taken := c.dead
	c.dead, c.sweeping = nil, c.sweeping+len(taken)
	c.mu.Unlock()
	left, err := taken, error(nil)
	for len(left) > 0 && err == nil {
		if err = c.erase(left[0]); err == nil {
			left = left[1:]
		}
	}
	c.mu.Lock()
	c.dead, c.sweeping = append(c.dead, left...), c.sweeping-len(taken)
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("delete blobs of a columnar copy: %w", err)
	}
	return nil
}

// erase deletes the blobs of a dead chunk, and its record.
func (c *Copy) erase(dead *blobs) error {
	b := c.rows.KV().NewBatch()
	defer b.Close()
	b.UseReserve() // it makes room
	if dead.unreadable {
		if err := b.DeleteRange(within(chunkPrefix(columnName, c.rows.Space(), c.id, dead.number))); err != nil {
			return err
		}
	}
	for _, col := range dead.columns {
		if err := b.Delete(columnKey(c.rows.Space(), c.id, dead.number, col.ID)); err != nil {
			return err
		}
	}
	if err := b.Delete(chunkKey(c.rows.Space(), c.id, dead.number)); err != nil {
		return err
	}
	return b.CommitNoSync()
}

// replace puts records of chunks in a batch and marks others dead, commits it and publishes the directory. The caller holds writing.
// What the batch holds already are the blobs of the new ones.
func (c *Copy) replace(b kv.Batch, with, dead []*chunk, rest []*chunk) error {
	var record []byte
	put := func(list []*chunk, dead bool) error {
		for _, ch := range list {
			record = appendRecord(record[:0], ch, dead)
			if err := b.Put(chunkKey(c.rows.Space(), c.id, ch.number), record); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(put(with, false), put(dead, true)); err != nil {
		return err
	}
	// It can be done again: after a crash, the store has the batch whole or not at all, and none that follows without it.
	if err := b.CommitNoSync(); err != nil {
		return err
	}
	c.publish(append(rest, with...))
	return nil
}

// ErrDropped says that the copy is no longer wanted.
var ErrDropped = errors.New("columnar copy was dropped")

func (c *Copy) drop() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	b := c.rows.KV().NewBatch()
	defer b.Close()
	b.UseReserve()
	if err := c.replace(b, nil, c.dir.chunks, nil); err != nil {
		return fmt.Errorf("drop columnar copy: %w", err)
	}
	c.dropped = true
	return nil
}
