package columnar

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func isDataLoss(err error) bool {
	return usererror.CodeOf(err) == codes.DataLoss
}

// someRows returns a database whose table has columns of every kind and the given number of rows, a copy of the table,
// and a Read of all rows and columns.
func someRows(t *testing.T, fs vfs.FS, rows int) (*harness, *Copy, Read) {
	h := newHarness(t, fs, modelDDL)
	m := &model{t: t, rng: rand.New(rand.NewPCG(5, 5)), harness: h}
	top := h.catalog.Table("Top")
	mut := table.Mutation{Op: table.InsertOrUpdate, Table: top}
	for _, c := range top.Columns {
		if c.Generated == nil {
			mut.Columns = append(mut.Columns, c)
		}
	}
	for i := range rows {
		row := m.row(mut.Columns)
		row[0] = value.OfInt64(int64(i))
		mut.Rows = append(mut.Rows, row)
	}
	if !h.commit(mut) {
		t.Fatal("refused")
	}
	src := h.source(top, nil, h.now)
	read := Read{Projection: src.Projection, At: h.now}
	read.Spans, _ = read.Projection.Spans(table.KeySet{All: true})
	return h, h.build(src), read
}

// TestDamage checks that a read returns DATA_LOSS and marks the chunk as damaged if a blob has a changed byte, is cut
// short, or is missing. The next read must take the rows from the table instead.
func TestDamage(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 60)
	defer h.close()
	want, err := h.fromRows(read)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		ch := c.dir.chunks[0]
		key := columnKey(testSpace, c.id, ch.number, ch.columns[rng.IntN(len(ch.columns))].ID)
		was := stored(t, h, key)
		now := bytes.Clone(was)
		switch rng.IntN(4) {
		case 0:
			now = now[:rng.IntN(len(now))]
		case 1:
			now = nil
		default:
			now[rng.IntN(len(now))] ^= byte(1 + rng.IntN(255))
		}
		store(t, h, key, now)
		if _, err := h.fromCopy(c, read, nil); !isDataLoss(err) {
			t.Errorf("blob %x in the place of %x: %v", now, was, err)
		}
		if !c.Chunks()[0].Damaged {
			t.Error("the damage is forgotten")
		}
		if got, err := h.fromCopy(c, read, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("the read that follows: %q, %v", got, err)
		}
		store(t, h, key, was)
		ch.damaged.Store(false)
	}
	// After the damaged chunk was written anew, it is no longer marked as damaged.
	c.dir.chunks[0].damaged.Store(true)
	src := h.source(read.Table, nil, h.now)
	if _, err := c.Write(t.Context(), src, c.Chunks()[0].Span); err != nil {
		t.Fatal(err)
	}
	if got, err := h.fromCopy(c, read, nil); err != nil || !slices.Equal(got, want) || c.Chunks()[0].Damaged {
		t.Errorf("after it was written anew: %q, %v", got, err)
	}
}

func stored(t *testing.T, h *harness, key []byte) []byte {
	t.Helper()
	it, err := h.store.NewIter(key, append(bytes.Clone(key), 0))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if !it.First() {
		t.Fatal("nothing is stored")
	}
	val, err := it.Value()
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(val)
}

// store stores a value under a key. If the value is nil, it deletes the key.
func store(t *testing.T, h *harness, key, val []byte) {
	t.Helper()
	b := h.store.NewBatch()
	defer b.Close()
	err := b.Delete(key)
	if val != nil {
		err = b.Put(key, val)
	}
	if err = errors.Join(err, b.CommitNoSync()); err != nil {
		t.Fatal(err)
	}
}

// TestMalformed checks that decode refuses a malformed blob with a correct checksum, or returns an array all of whose
// values can be read.
func TestMalformed(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 20)
	defer h.close()
	ch := c.dir.chunks[0]
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		i := rng.IntN(len(ch.columns))
		blob := stored(t, h, columnKey(testSpace, c.id, ch.number, ch.columns[i].ID))
		for range 1 + rng.IntN(3) {
			blob[blobHead+rng.IntN(min(len(blob)-blobHead, 40))] = byte(rng.IntN(256))
		}
		seal(blob)
		var d decoder
		a, err := d.decode(blob, arrowType(read.Columns[i].Type, ch.columns[i].stored), ch.rows)
		if err != nil {
			continue
		}
		for row := range a.Len() {
			_ = a.ValueStr(row)
		}
	}
}

// TestBadRecord checks that a chunk with a malformed record is deleted together with its blobs, and that reads take
// the rows from the table.
func TestBadRecord(t *testing.T) {
	fs := vfs.NewMem()
	h, c, read := someRows(t, fs, 20)
	want, _ := h.fromRows(read)
	key := chunkKey(testSpace, c.id, c.dir.chunks[0].number)
	record := stored(t, h, key)
	store(t, h, key, record[:len(record)-1])
	h.close()
	h.open()
	defer h.close()
	if n := len(blobKeys(t, h)); n > 0 {
		t.Errorf("%d blobs are left", n)
	}
	c = h.copies.Of(c.id)
	if got, err := h.fromCopy(c, read, nil); err != nil || !slices.Equal(got, want) || len(c.Chunks()) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// blobKeys returns the keys of all stored blobs.
func blobKeys(t *testing.T, h *harness) (keys []string) {
	t.Helper()
	prefix := spacePrefix(columnName, testSpace)
	it, err := h.store.NewIter(within(prefix))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return keys
}
