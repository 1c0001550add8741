package columnar

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// chunkColumns reads the columns of one chunk, and then those of the next. It reuses its memory, and reads a column
// only when the column is needed.
type chunkColumns struct {
	copy   *Copy
	layout *table.Layout
	chunk  *chunk
	list   []*chunkColumn // the columns that the read needs and those of the key, each once
	places []int          // indexes in list: of the columns that the read needs, followed by those of the key's parts

	wanted             []arrow.Array // arrays of the columns that the read needs; loadWanted sets them
	keys               *keys         // the keys of the chunk's rows; loadKeys sets the arrays of the key's columns
	hasKeys, hasWanted bool
}

// chunkColumn is one column of the chunk.
type chunkColumn struct {
	column  *schema.Column
	wanted  wanted
	decoder decoder
	array   arrow.Array // nil if it has not been read
}

func newChunkColumns(c *Copy, p *table.Projection) *chunkColumns {
	cc := &chunkColumns{copy: c, layout: p.Layout, wanted: make([]arrow.Array, len(p.Columns)), keys: newKeys(p.Layout)}
	for _, col := range p.Columns {
		cc.add(col)
	}
	for _, part := range p.Key {
		cc.add(part.Column)
	}
	return cc
}

func (cc *chunkColumns) add(c *schema.Column) {
	for i, l := range cc.list {
		if l.column == c {
			cc.places = append(cc.places, i)
			return
		}
	}
	cc.places = append(cc.places, len(cc.list))
	cc.list = append(cc.list, &chunkColumn{column: c, wanted: wanted{c.ID, c.ComputedFrom()}})
}

// begin moves on to another chunk.
func (cc *chunkColumns) begin(c *chunk) {
	cc.chunk, cc.hasKeys, cc.hasWanted = c, false, false
	for _, l := range cc.list {
		l.array = nil
	}
}

func (cc *chunkColumns) loadWanted() (err error) {
	for i := 0; !cc.hasWanted && i < len(cc.wanted); i++ {
		if cc.wanted[i], err = cc.load(cc.list[cc.places[i]]); err != nil {
			return err
		}
	}
	cc.hasWanted = true
	return nil
}

func (cc *chunkColumns) loadKeys() (_ *keys, err error) {
	for i := 0; !cc.hasKeys && i < len(cc.keys.columns); i++ {
		if cc.keys.columns[i], err = cc.load(cc.list[cc.places[len(cc.wanted)+i]]); err != nil {
			return nil, err
		}
	}
	cc.hasKeys = true
	return cc.keys, nil
}

// load reads the blob of a column and decodes it, unless it has done so before for this chunk.
func (cc *chunkColumns) load(l *chunkColumn) (arrow.Array, error) {
	if l.array != nil {
		return l.array, nil
	}
	col := cc.chunk.column(l.wanted)
	if col == nil {
		return nil, fmt.Errorf("chunk %d of %s has no column %s", cc.chunk.number, cc.layout.Name(), l.column.Name)
	}
	it, err := cc.copy.rows.KV().PointIter()
	if err != nil {
		return nil, err
	}
	defer it.Close()
	key := columnKey(cc.copy.rows.Space(), cc.copy.id, cc.chunk.number, col.ID)
	found := it.SeekPrefixGE(key) && bytes.Equal(it.Key(), key)
	if err := it.Error(); err != nil {
		return nil, cc.unread(err)
	}
	if !found {
		if err := cc.copy.rows.Gone(); err != nil {
			return nil, err
		}
		return nil, cc.damaged(l, fmt.Errorf("it is not there"))
	}
	blob, err := it.Value()
	if err != nil {
		return nil, cc.unread(err)
	}
	if l.array, err = l.decoder.decode(blob, arrowType(l.column.Type, col.stored), cc.chunk.rows); err != nil {
		return nil, cc.damaged(l, err)
	}
	return l.array, nil
}

// damaged marks the chunk as damaged, because its column l is damaged or missing. It returns the error for the read
// that needs this column. Later reads take the rows from the table instead.
func (cc *chunkColumns) damaged(l *chunkColumn, err error) error {
	cc.chunk.damaged.Store(true)
	return fmt.Errorf("%w: column %s of chunk %d of %s: %w", usererror.DataDamaged("a columnar copy"), l.column.Name, cc.chunk.number, cc.layout.Name(), err)
}

// unread handles err, the error of a read from the store. If err says that a file of the storage engine is damaged,
// unread marks the chunk as damaged. It returns err.
func (cc *chunkColumns) unread(err error) error {
	if usererror.CodeOf(err) == codes.DataLoss {
		cc.chunk.damaged.Store(true)
	}
	return err
}

// column returns the chunk's column with the id and the definition of w; nil if the chunk does not have it.
func (c *chunk) column(w wanted) *column {
	for i := range c.columns {
		if col := &c.columns[i]; col.ID == w.id && col.definition == w.definition {
			return col
		}
	}
	return nil
}

func (cc *chunkColumns) size() (n int64) {
	for _, l := range cc.list {
		n += l.decoder.size()
	}
	return n
}
