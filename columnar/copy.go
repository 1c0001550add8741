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

// Copy is the columnar copy of one table or index. Many goroutines may use it at once. Calls that write chunks run one
// after another.
type Copy struct {
	id   schema.TableID
	rows *mvcc.Versions
	last *atomic.Uint64 // highest chunk number in the database; all copies share it, so no number is used twice
	limits

	writing sync.Mutex // held while chunks are replaced; guards the field dropped
	dropped bool

	mu       sync.Mutex
	dir      *directory // the newest directory
	readers  int        // number of open Readers
	dead     []*blobs   // blobs that are neither in the newest directory nor in one that a Reader uses
	sweeping int        // number of blobs that a sweep has taken from dead and is deleting
}

// limits bound the sizes of chunks and of runs, the groups of consecutive rows that a Reader returns. Tests set smaller
// limits.
type limits struct {
	maxRows  int   // maximum number of rows of a chunk
	maxBytes int64 // maximum size of a chunk's Arrow buffers in bytes
	minSlice int   // minimum number of unchanged rows that a Reader returns as a run without copying them
	maxBatch int   // approximate maximum number of rows of a run of copied rows
}

var fullLimits = limits{maxRows: MaxRows, maxBytes: MaxBytes, minSlice: minSlice, maxBatch: maxMerged}

// directory lists the chunks of a copy at one moment, in the order of their key ranges. The list never changes.
type directory struct {
	chunks  []*chunk
	readers int  // number of Readers that use the directory; guarded by Copy.mu
	old     bool // whether there is a newer directory; guarded by Copy.mu
}

// chunk is a range of keys with the rows that were in the range at a timestamp. It never changes. To narrow its range
// or to change its timestamp, Copy makes another chunk with the same blobs.
type chunk struct {
	*blobs
	at         mvcc.Timestamp
	start, end []byte
	startCut   bool // whether the blobs have rows before start
}

// blobs describes the stored columns of a chunk. Several chunks may have the same blobs.
type blobs struct {
	number      uint64
	rows        int64
	columns     []column
	damaged     atomic.Bool // whether a read has found damage
	unreadable  bool        // whether the record is malformed, so that the columns are unknown
	directories int         // directories with these blobs, except old ones that no Reader uses; guarded by Copy.mu
}

// column is a column of a chunk.
type column struct {
	ID         schema.ColumnID
	definition string // schema.Column.ComputedFrom when the blob was written; if it has changed, the blob is not used
	stored     bool   // whether the array holds the values in the form in which rows store them (see isStored)
	Size       int64  // size in bytes of the Arrow buffers
	Bytes      int64  // size in bytes of the blob
}

func newCopy(c *Copies, id schema.TableID) *Copy {
	return &Copy{id: id, rows: c.rows, last: &c.last, limits: fullLimits, dir: new(directory)}
}

// ID returns the number of the table or index.
func (c *Copy) ID() schema.TableID { return c.id }

// Chunk describes a chunk.
type Chunk struct {
	Number  uint64
	Span    table.Span
	At      mvcc.Timestamp
	Rows    int64 // rows in the blobs; some are not in Span if a newer chunk covers a part of the original range
	Size    int64 // size in bytes of the Arrow buffers of all columns
	Bytes   int64 // size in bytes of the blobs of all columns
	Columns []schema.ColumnID
	Damaged bool // whether a read has found damage. Then the chunk is not read any more, and must be written anew.
}

// Chunks returns the current chunks, in the order of their ranges.
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

// covering returns the chunks whose ranges overlap [start, end).
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

// acquire returns the newest directory, and prevents its blobs from being deleted until release is called.
func (c *Copy) acquire() *directory {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers++
	c.dir.readers++
	return c.dir
}

// release ends the use of a directory, and deletes the blobs that belong to no directory any more.
func (c *Copy) release(d *directory) {
	c.mu.Lock()
	c.readers--
	d.readers--
	c.forget(d)
	c.mu.Unlock()
	_ = c.sweep() // if the store refuses this, the next sweep or start deletes them
}

// publish makes a directory of the chunks. This directory becomes the newest one. publish sorts the slice chunks and
// keeps it.
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

// forget gives up a directory if it is not the newest one and not in use. Blobs that are in no other directory are then
// dead. The caller holds mu.
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

// gone reports whether no Reader uses the copy, which was dropped, and all its blobs are deleted.
func (c *Copy) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readers == 0 && len(c.dead) == 0 && c.sweeping == 0
}

// sweep deletes the blobs that belong to no directory any more.
func (c *Copy) sweep() error {
	c.mu.Lock()
	dead := c.dead
	c.dead, c.sweeping = nil, c.sweeping+len(dead)
	c.mu.Unlock()
	left, err := dead, error(nil)
	for len(left) > 0 && err == nil {
		if err = c.erase(left[0]); err == nil {
			left = left[1:]
		}
	}
	c.mu.Lock()
	c.dead, c.sweeping = append(c.dead, left...), c.sweeping-len(dead)
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
	b.UseReserve() // the batch frees disk space, so the store must accept it even if the disk is nearly full
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

// replace changes the chunks of the copy. The parameter with lists the new chunks, the parameter dead the chunks to
// delete, and the parameter rest the chunks that stay. replace adds the records of the new chunks to batch b, marks the
// records of the chunks to delete as dead, commits the batch, and publishes a directory of the new chunks and those
// that stay. The batch already holds the blobs of the new chunks. The caller holds the mutex writing.
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
	// The batch is not synced, since the work can be repeated: if a crash loses the batch, the old chunks remain, and
	// new ones are written later. The store never keeps only a part of a batch. It also never loses a batch and keeps a
	// later one, such as the deletion of the old chunks' blobs.
	if err := b.CommitNoSync(); err != nil {
		return err
	}
	c.publish(append(rest, with...))
	return nil
}

// ErrDropped is the error of a write to a copy that was dropped.
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
