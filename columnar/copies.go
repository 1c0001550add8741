package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// Copies holds the copies of the tables and indexes of one database. Many goroutines may use it at once.
type Copies struct {
	rows *mvcc.Versions
	last atomic.Uint64 // the highest number of a chunk so far

	mu      sync.Mutex
	byID    map[schema.TableID]*Copy
	dropped []*Copy // dropped copies with blobs that are not yet deleted
}

// Open reads the records of all copies of one database, and deletes the blobs of dead chunks. The parameter rows holds
// the rows of this database.
func Open(rows *mvcc.Versions) (*Copies, error) {
	c := &Copies{rows: rows, byID: map[schema.TableID]*Copy{}}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("open columnar copies: %w", err)
	}
	// The store may refuse the deletion, for example because the disk is full. Then the next Sweep deletes the blobs.
	_ = c.Sweep()
	return c, nil
}

// Of returns the copy of a table or index; nil if there is none.
func (c *Copies) Of(id schema.TableID) *Copy {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

// Make returns the copy of a table or index. If there is none, it makes a copy without chunks, for which nothing is
// stored yet.
func (c *Copies) Make(id schema.TableID) *Copy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make(id)
}

func (c *Copies) make(id schema.TableID) *Copy {
	tableCopy := c.byID[id]
	if tableCopy == nil {
		tableCopy = newCopy(c, id)
		c.byID[id] = tableCopy
	}
	return tableCopy
}

// All returns the copies, sorted by the numbers of their tables and indexes.
func (c *Copies) All() []*Copy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.byID), func(a, b *Copy) int { return cmp.Compare(a.id, b.id) })
}

// Drop removes the copy of a table or index, if there is one. Readers that are open can still use the copy. Drop waits
// while a chunk of the copy is being written.
func (c *Copies) Drop(id schema.TableID) error {
	tableCopy := c.Of(id)
	if tableCopy == nil {
		return nil
	}
	if err := tableCopy.drop(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.byID[id] == tableCopy {
		delete(c.byID, id)
		c.dropped = append(c.dropped, tableCopy)
	}
	c.mu.Unlock()
	if err := c.Sweep(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return err
	}
	return nil
}

// Sweep deletes the blobs of dead chunks that no Reader can use any more, for all copies. Copy.Write and Reader.Close
// do the same for one copy.
func (c *Copies) Sweep() error {
	for _, tableCopy := range c.All() {
		if err := tableCopy.sweep(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	dropped := slices.Clone(c.dropped)
	c.mu.Unlock()
	for _, tableCopy := range dropped {
		if err := tableCopy.sweep(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = slices.DeleteFunc(c.dropped, (*Copy).gone)
	return nil
}

// Swept reports whether all data of dropped copies is deleted. It is false while a Reader still uses such a copy, or
// if the store refused the deletion.
func (c *Copies) Swept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.dropped) == 0
}

// Erase adds to a batch the deletion of all copies in a space. It is called when the database of this space is dropped.
func Erase(b kv.Batch, space mvcc.Space) error {
	for _, kind := range []string{chunkName, columnName} {
		if err := b.DeleteRange(within(spacePrefix(kind, space))); err != nil {
			return err
		}
	}
	return nil
}

func (c *Copies) load() error {
	prefix := spacePrefix(chunkName, c.rows.Space())
	it, err := c.rows.KV().NewIter(within(prefix))
	if err != nil {
		return err
	}
	defer it.Close()
	live := map[schema.TableID][]*chunk{}
	for ok := it.First(); ok; ok = it.Next() {
		id, number, err := parseChunkKey(it.Key(), len(prefix))
		if err != nil {
			return err
		}
		val, err := it.Value()
		if err != nil {
			return err
		}
		found, dead, ok := parseRecord(val)
		if !ok {
			// The chunk's columns and range are unknown. It is treated as dead, so reads take the rows from the table.
			found, dead = &chunk{blobs: &blobs{unreadable: true}}, true
		}
		found.number = number
		tableCopy := c.make(id)
		c.last.Store(max(c.last.Load(), number))
		if dead {
			tableCopy.dead = append(tableCopy.dead, found.blobs)
		} else {
			live[id] = append(live[id], found)
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	for id, chunks := range live {
		c.byID[id].publish(chunks)
	}
	return nil
}

// The keys of chunks' records begin with chunkName, and the keys of columns' blobs with columnName, each after the
// number of space 0 (see the package comment).
const (
	chunkName  = "columnar/chunk/"
	columnName = "columnar/column/"
)

func spacePrefix(kind string, space mvcc.Space) []byte {
	key := append(make([]byte, 4, 64), kind...)
	return binary.BigEndian.AppendUint32(key, uint32(space))
}

func chunkPrefix(kind string, space mvcc.Space, id schema.TableID, number uint64) []byte {
	key := binary.BigEndian.AppendUint32(spacePrefix(kind, space), uint32(id))
	return binary.BigEndian.AppendUint64(key, number)
}

func chunkKey(space mvcc.Space, id schema.TableID, number uint64) []byte {
	return append(chunkPrefix(chunkName, space, id, number), 0)
}

func columnKey(space mvcc.Space, id schema.TableID, number uint64, column schema.ColumnID) []byte {
	key := chunkPrefix(columnName, space, id, number)
	return append(binary.BigEndian.AppendUint32(key, uint32(column)), 0)
}

func parseChunkKey(key []byte, prefix int) (schema.TableID, uint64, error) {
	if len(key) != prefix+4+8+1 {
		return 0, 0, fmt.Errorf("record %x is none of a chunk", key)
	}
	return schema.TableID(binary.BigEndian.Uint32(key[prefix:])), binary.BigEndian.Uint64(key[prefix+4:]), nil
}

func parseColumnKey(key []byte, prefix int) (schema.TableID, uint64, schema.ColumnID, error) {
	if len(key) != prefix+4+8+4+1 {
		return 0, 0, 0, fmt.Errorf("record %x is none of a column", key)
	}
	key = key[prefix:]
	return schema.TableID(binary.BigEndian.Uint32(key)), binary.BigEndian.Uint64(key[4:]), schema.ColumnID(binary.BigEndian.Uint32(key[12:])), nil
}

// within returns the bounds of all keys that begin with prefix. At least one byte of prefix must not be FF. The bounds
// end in 00, as all keys without a version do: the store takes a last byte of 09 for the mark of a version, and would
// cut the suffix off.
func within(prefix []byte) (lower, upper []byte) {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return append(bytes.Clone(prefix), 0), append(end[:i+1], 0)
		}
	}
}
