package changestream

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// PartitionID numbers a partition of a stream. Numbers rise and none is given out twice, also over restarts: the highest one is always that of a
// partition that has not ended, and is found again at the next start.
type PartitionID uint64

// Partition is a range of keys of a database, and of time, whose changes one reader reads.
type Partition struct {
	stream     *stream
	id         PartitionID
	start, end []byte         // the first key, and the first one behind; nil for the ends of the database
	from       mvcc.Timestamp // when it begins
	parents    []PartitionID
	token      string
	prefix     []byte // of the keys of its records
	ending     atomic.Pointer[ending]

	waiting sync.Mutex
	wake    chan struct{} // closed by Wake; nil if no reader waits
}

// ending is the end of a partition. It is stored in the partition before its timestamp is visible.
type ending struct {
	until    mvcc.Timestamp // the first timestamp that is not the partition's
	children []*Partition
}

// partitionRecord is a partition as stored.
type partitionRecord struct {
	From       mvcc.Timestamp
	Until      mvcc.Timestamp `json:",omitempty"` // 0: it has not ended
	Start, End []byte         `json:",omitempty"`
	Parents    []PartitionID  `json:",omitempty"`
	Children   []PartitionID  `json:",omitempty"`
}

// partition makes a partition of what is stored, but for its children.
func (s *stream) partition(id PartitionID, r *partitionRecord) *Partition {
	p := &Partition{stream: s, id: id, start: r.Start, end: r.End, from: r.From, parents: r.Parents}
	p.prefix = keyOf(recordName, s.log.cfg.Space, uint64(s.id), uint64(id))
	p.token = s.log.tokenOf(s.id, id)
	if r.Until != 0 {
		p.ending.Store(&ending{until: r.Until})
	}
	return p
}

func (p *Partition) put(b kv.Batch) error { return p.putEnding(b, p.ending.Load()) }

func (p *Partition) putEnding(b kv.Batch, e *ending) error {
	r := partitionRecord{From: p.from, Start: p.start, End: p.end, Parents: p.parents}
	if e != nil {
		r.Until = e.until
		for _, c := range e.children {
			r.Children = append(r.Children, c.id)
		}
	}
	return putJSON(b, p.key(), r)
}

func (p *Partition) key() []byte {
	return append(keyOf(partitionName, p.stream.log.cfg.Space, uint64(p.stream.id), uint64(p.id)), 0)
}

// livesAt says whether the partition has the changes of a timestamp.
func (p *Partition) livesAt(ts mvcc.Timestamp) bool {
	e := p.ending.Load()
	return p.from <= ts && (e == nil || ts < e.until)
}

// Partitions are the partitions of a stream at one time. Together they have all keys, each once. A list is never changed: as long as a commit finds
// the same list, all keys have the same partitions.
type Partitions struct {
	from mvcc.Timestamp
	list []*Partition // in the order of keys
}

// Of is the partition that has a logical key.
func (p *Partitions) Of(key []byte) *Partition {
	i := sort.Search(len(p.list), func(i int) bool { return bytes.Compare(p.list[i].start, key) > 0 })
	return p.list[i-1]
}

// Append adds a record to the batch of the commit that has the timestamp. sequence orders the records of the commit, in all partitions.
func (p *Partition) Append(b kv.Batch, ts mvcc.Timestamp, sequence uint32, record []byte) error {
	var room [recordKeySize]byte
	return b.Put(p.appendKey(room[:0], Position{ts, sequence}), record)
}

// appendKey appends the key of the record behind a position.
func (p *Partition) appendKey(dst []byte, at Position) []byte {
	dst = append(dst, p.prefix...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at.Timestamp))
	return append(binary.BigEndian.AppendUint32(dst, at.Sequence), 0)
}

// positionOf is the position in the key of a record.
func (p *Partition) positionOf(key []byte) Position {
	rest := key[len(p.prefix):]
	return Position{mvcc.Timestamp(binary.BigEndian.Uint64(rest)), binary.BigEndian.Uint32(rest[8:])}
}

// Wake wakes the readers: records that Append added are visible now, or the partition has ended.
func (p *Partition) Wake() {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

// nextWake returns a channel that the next Wake closes.
func (p *Partition) nextWake() <-chan struct{} {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	return p.wake
}

// Reshape gives a stream the partitions that bounds make, from one timestamp on. Those that stay as they are go on. Each other one ends with the
// partitions that have its keys then as its children. When Reshape returns, that is visible. If it fails nothing has changed. bounds is called
// while no other Reshape runs, so that the last of several calls is the one that knows the newest bounds.
func (l *Log) Reshape(id schema.ChangeStreamID, bounds func() [][]byte) error {
	l.reshaping.Lock()
	defer l.reshaping.Unlock()
	ended, land := l.reshape(id, bounds())
	if err := land(); err != nil {
		return err
	}
	for _, p := range ended {
		p.Wake()
	}
	return nil
}

// reshape does all of Reshape but the landing, which the caller does without mu: it waits for commits that may be waiting for mu.
func (l *Log) reshape(id schema.ChangeStreamID, bounds [][]byte) (ended []*Partition, land func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[id]
	if s == nil || s.leaving || s.current.cutAt(bounds) {
		return nil, func() error { return nil }
	}
	b := l.cfg.Store.NewBatch()
	defer b.Close()
	b.UseReserve()
	at, flight, err := l.cfg.Oracle.Take(b)
	if flight == nil {
		return nil, func() error { return err }
	}
	before := s.last
	next, endings := s.cut(bounds, at)
	if err == nil {
		err = putCut(b, next, endings, before)
	}
	if err != nil {
		s.takeBack(before)
		return nil, func() error { return errors.Join(fmt.Errorf("build partitions: %w", err), flight.Abandon()) }
	}
	if err = b.Commit(); err != nil {
		s.takeBack(before)
		return nil, func() error { return flight.Land(err) }
	}
	s.previous, s.current = s.current, next
	for p, e := range endings {
		p.ending.Store(e)
		ended = append(ended, p)
	}
	return ended, func() error { return flight.Land(nil) }
}

// putCut adds what cut has made: endings, and the partitions with numbers above before.
func putCut(b kv.Batch, next *Partitions, endings map[*Partition]*ending, before PartitionID) (err error) {
	for p, e := range endings {
		err = cmp.Or(err, p.putEnding(b, e))
	}
	for _, p := range next.list {
		if p.id > before {
			err = cmp.Or(err, p.put(b))
		}
	}
	return err
}

// takeBack forgets the partitions with numbers above before.
func (s *stream) takeBack(before PartitionID) {
	for ; s.last > before; s.last-- {
		delete(s.partitions, s.last)
	}
}

// cutAt says whether the partitions lie between these bounds already.
func (p *Partitions) cutAt(bounds [][]byte) bool {
	return slices.EqualFunc(p.list[1:], bounds, func(p *Partition, bound []byte) bool { return bytes.Equal(p.start, bound) })
}

// cut makes the partitions that lie between the bounds from a timestamp on, and the endings of those that give way to them.
func (s *stream) cut(bounds [][]byte, at mvcc.Timestamp) (next *Partitions, endings map[*Partition]*ending) {
	next, endings = &Partitions{from: at}, map[*Partition]*ending{}
	old := s.current.list
	for i := range len(bounds) + 1 {
		start, end := between(bounds, i)
		for old[0].end != nil && bytes.Compare(old[0].end, start) <= 0 {
			old = old[1:]
		}
		if bytes.Equal(old[0].start, start) && bytes.Equal(old[0].end, end) {
			next.list = append(next.list, old[0])
			continue
		}
		child := s.begin(start, end, at)
		next.list = append(next.list, child)
		for _, p := range old {
			if end != nil && bytes.Compare(p.start, end) >= 0 {
				break
			}
			child.parents = append(child.parents, p.id)
			if endings[p] == nil {
				endings[p] = &ending{until: at}
			}
			endings[p].children = append(endings[p].children, child)
		}
	}
	return next, endings
}
