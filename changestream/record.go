package changestream

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// maxRecordBytes is the maximum size in bytes of the mods in one record. A mod that is larger gets a record of its
// own. Spanner documents no limit. A client gets a record in one piece, and this limit keeps the record far below
// 10 MiB, Spanner's limit on the size of a value.
const maxRecordBytes = 1 << 20

// Append adds the records of the changes to the batch of the commit at ts. It returns the partitions to which it has
// added records. The caller must call Wake on the result when the commit is visible. If the batch is not written,
// Append may be called again with another timestamp.
//
// A record holds consecutive changes in one partition with the same table, operation and columns. The records of a
// transaction in a stream are numbered in the order of their first changes.
func (c *Changes) Append(b kv.Batch, l *Log, ts mvcc.Timestamp, tx *Transaction) (Touched, error) {
	g := grouping{mods: c.mods, log: l, ts: ts, stamp: ts.Time().Format(timestampLayout)}
	for i := range c.mods {
		if err := g.add(i); err != nil {
			return nil, err
		}
	}
	w := recordWriters.Get().(*recordWriter)
	defer w.release()
	w.grouping, w.tx, w.id = &g, tx, strconv.FormatInt(int64(ts), 10)
	for i := range g.records {
		if err := w.write(b, &g.records[i], g.records[i].in.last == i); err != nil {
			return nil, err
		}
	}
	touched := make(Touched, len(g.partitions))
	for i, p := range g.partitions {
		touched[i] = p.Partition
	}
	return touched, nil
}

// Touched lists the partitions to which a commit has added records.
type Touched []*Partition

// Wake wakes the readers of the partitions. It must be called when the commit is visible.
func (t Touched) Wake() {
	for _, p := range t {
		p.Wake()
	}
}

// grouping puts the mods of a commit together into records.
type grouping struct {
	mods       []Mod
	log        *Log
	ts         mvcc.Timestamp
	stamp      string // the text of ts
	streams    []*writtenStream
	partitions []*writtenPartition
	latest     *writtenPartition                // the partition of the mod that was added last
	found      map[*Partition]*writtenPartition // the elements of the field partitions; nil while there is at most one
	records    []record
}

// writtenStream is a stream to which a commit writes records. It counts the commit's records in the stream, and the
// partitions to which they go.
type writtenStream struct {
	id         schema.ChangeStreamID
	at         *Partitions
	records    int
	partitions int
}

// writtenPartition is a partition to which a commit writes records.
type writtenPartition struct {
	*Partition
	stream *writtenStream
	last   int // index in grouping.records of the partition's last record; -1 if it has none yet
}

// record is a data change record that is not encoded yet.
type record struct {
	in          *writtenPartition
	sequence    int
	first, last int // indexes in grouping.mods of the first and the last mod; Mod.next links the mods in between
	bytes       int // size in bytes of the mods of the record
}

// add adds mod i to the last record of its partition, or begins a new record.
func (g *grouping) add(i int) error {
	m := &g.mods[i]
	m.fill(g.ts, g.stamp)
	m.next = 0
	stream, err := g.stream(m.watch.Stream.ID)
	if err != nil {
		return err
	}
	in := g.partition(stream, stream.at.Of(m.data[:m.start]))
	if in.last >= 0 {
		r := &g.records[in.last]
		if m.joins(&g.mods[r.last]) && r.bytes+m.size() <= maxRecordBytes {
			g.mods[r.last].next = i
			r.last = i
			r.bytes += m.size()
			return nil
		}
	}
	in.last = len(g.records)
	g.records = append(g.records, record{in: in, sequence: stream.records, first: i, last: i, bytes: m.size()})
	stream.records++
	return nil
}

// joins reports whether m can be in the same record as o, an earlier mod in the same partition.
func (m *Mod) joins(o *Mod) bool {
	return m.op == o.op && m.watch == o.watch && sameColumns(m.columns, o.columns)
}

// sameColumns reports whether a and b are equal. If the slices share their memory, it does not compare the elements.
func sameColumns(a, b []*schema.Column) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

// fill writes the commit timestamp into the mod. stamp is the text of the timestamp.
func (m *Mod) fill(ts mvcc.Timestamp, stamp string) {
	for _, p := range m.pendingKey {
		p.Fill(m.data, ts)
	}
	for _, at := range m.pending {
		copy(m.data[at:], stamp)
	}
}

func (g *grouping) stream(id schema.ChangeStreamID) (*writtenStream, error) {
	for _, s := range g.streams {
		if s.id == id {
			return s, nil
		}
	}
	at := g.log.At(id, g.ts)
	if at == nil {
		return nil, fmt.Errorf("change stream %d has no partitions", id)
	}
	s := &writtenStream{id: id, at: at}
	g.streams = append(g.streams, s)
	return s, nil
}

// partition returns the writtenPartition of p. If g has none yet, partition adds one.
func (g *grouping) partition(s *writtenStream, p *Partition) *writtenPartition {
	if g.latest != nil && g.latest.Partition == p {
		return g.latest
	}
	if g.latest = g.found[p]; g.latest != nil {
		return g.latest
	}
	g.latest = &writtenPartition{Partition: p, stream: s, last: -1}
	g.partitions = append(g.partitions, g.latest)
	s.partitions++
	if len(g.partitions) > 1 {
		if g.found == nil {
			g.found = map[*Partition]*writtenPartition{g.partitions[0].Partition: g.partitions[0]}
		}
		g.found[p] = g.latest
	}
	return g.latest
}

// recordWriters keeps released recordWriters, so that later commits can reuse their buffers.
var recordWriters = sync.Pool{New: func() any { return new(recordWriter) }}

// recordWriter writes the records of one commit.
type recordWriter struct {
	*grouping
	tx         *Transaction
	id         string // the field server_transaction_id of the records
	head, tail []byte // the encoded fields of a record before and after its mods
	buf, typ   []byte
	columns    []*schema.Column
}

// release returns the writer to the pool, unless its buffer is unusually large.
func (w *recordWriter) release() {
	if cap(w.buf) > 2*maxRecordBytes {
		return
	}
	*w = recordWriter{head: w.head, tail: w.tail, buf: w.buf, typ: w.typ}
	recordWriters.Put(w)
}

var opNames = map[table.Op]string{table.Insert: "INSERT", table.Update: "UPDATE", table.Delete: "DELETE"}

// write adds a record to the batch. The parameter last says that the record is the last record of the commit in its
// partition. The fields are in the order of
// https://cloud.google.com/spanner/docs/change-streams/details#data-change-records.
func (w *recordWriter) write(b kv.Batch, r *record, last bool) error {
	m, stream := &w.mods[r.first], r.in.stream
	h := w.head[:0]
	h = appendText(h, w.stamp)
	h = appendText(h, fmt.Sprintf("%08d", r.sequence))
	h = appendText(h, w.id)
	h = appendBool(h, last)
	h = appendText(h, m.table.FullName())
	w.head = w.appendColumns(h, m)

	t := w.tail[:0]
	t = appendText(t, opNames[m.op])
	t = appendText(t, m.watch.Stream.ValueCapture.String())
	t = appendText(t, strconv.Itoa(stream.records))
	t = appendText(t, strconv.Itoa(stream.partitions))
	t = appendText(t, w.tx.Tag)
	w.tail = appendBool(t, w.tx.System)

	fields := len(w.head) + valueSize(r.bytes) + len(w.tail)
	dst := appendRecordHead(slices.Grow(w.buf[:0], fields+maxRecordHead), dataChange, fields)
	dst = append(dst, w.head...)
	dst = appendListHead(dst, r.bytes)
	for i := r.first; ; i = w.mods[i].next {
		dst = append(dst, w.mods[i].data[w.mods[i].start:]...)
		if i == r.last {
			break
		}
	}
	dst = append(dst, w.tail...)
	w.buf = appendRecordEnd(dst, dataChange)
	return r.in.Append(b, w.ts, uint32(r.sequence), w.buf)
}

// appendColumns appends the field column_types, which lists the key columns and the columns with values, in the order
// of the table's columns.
func (w *recordWriter) appendColumns(dst []byte, m *Mod) []byte {
	w.columns = append(append(w.columns[:0], m.watch.Key...), m.columns...)
	slices.SortFunc(w.columns, func(a, b *schema.Column) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	list := w.buf[:0]
	for _, c := range w.columns {
		w.typ = appendType(w.typ[:0], c.Type)
		ordinal := strconv.Itoa(c.Ordinal + 1)
		list = appendListHead(list, valueSize(len(c.Name))+valueSize(len(w.typ))+boolSize+valueSize(len(ordinal)))
		list = appendText(list, c.Name)
		list = append(appendTextHead(list, len(w.typ)), w.typ...)
		list = appendBool(list, c.KeyOrdinal >= 0)
		list = appendText(list, ordinal)
	}
	w.buf = list
	return append(appendListHead(dst, len(list)), list...)
}
