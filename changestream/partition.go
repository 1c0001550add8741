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

// The partitions of a stream divide two things, the keys of the database and time:
//
//	keys
//	 z |---------+-----------
//	   |   A     |    C          a change of key k at time t belongs to the one
//	 m |         +-----------    partition that has k and lives at t
//	   |         |    D
//	 a |---------+-----------  time
//	             t1
//
// At any time, every key belongs to exactly one living partition. A writer finds the partition of a row in the list of
// living partitions (Partitions), and puts the record into the batch of its commit. A reader reads one partition from
// its beginning to its end, in the order of time.
//
// When the splits of the database have changed, Reshape divides the keys anew. At one timestamp t1 it ends the
// partitions whose ranges change and begins their children. In the picture A ends, and C and D are its children. A
// partition may also have several parents, when ranges are merged. A reader of A gets all records below t1, then the
// tokens of C and D, and a client continues with these. So changes of one key come in order even though readers
// change.
//
// Three rules make that safe:
//
//   - A Reshape is itself a commit, and t1 is its timestamp. So every other commit has a timestamp below or above t1.
//   - A commit learns its timestamp before it chooses partitions. It uses the list of partitions that live at that
//     timestamp: the previous list if a Reshape has got a later timestamp in the meantime, and otherwise the current
//     list.
//   - An ending is stored before its timestamp becomes visible. So a reader that has read up to a visible timestamp
//     knows whether the partition has ended there. This holds after a crash, too.

// PartitionID is the number of a partition of a stream. New partitions get higher numbers, and no number is used
// twice. This holds even after a restart, because the partition with the highest number has never ended and is always
// stored, so its number is found again.
type PartitionID uint64

// Partition is a range of a database's keys during a period of time. A reader reads the changes of one partition.
type Partition struct {
	stream     *stream
	id         PartitionID
	start, end []byte         // the range [start, end) of keys; nil if the range has no bound on that side
	from       mvcc.Timestamp // the timestamp at which the partition begins
	parents    []PartitionID
	token      string
	prefix     []byte // the prefix of the keys of the partition's records
	ending     atomic.Pointer[ending]

	waiting sync.Mutex
	wake    chan struct{} // closed by the next Wake; nil if no reader waits
}

// ending describes how a partition ends. It is stored before the timestamp in the field until becomes visible.
type ending struct {
	until    mvcc.Timestamp // the first timestamp at which the partition no longer lives
	children []*Partition
}

// partitionRecord is a partition as stored.
type partitionRecord struct {
	From       mvcc.Timestamp
	Until      mvcc.Timestamp `json:",omitempty"` // 0 if the partition has not ended
	Start, End []byte         `json:",omitempty"`
	Parents    []PartitionID  `json:",omitempty"`
	Children   []PartitionID  `json:",omitempty"`
}

// partition makes a Partition from its stored form, without the children.
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

// livesAt reports whether the partition lives at a timestamp. If so, it holds the changes of that time.
func (p *Partition) livesAt(ts mvcc.Timestamp) bool {
	e := p.ending.Load()
	return p.from <= ts && (e == nil || ts < e.until)
}

// Partitions lists the partitions of a stream that live at one time, in the order of keys. Together they cover every
// key exactly once. A list never changes. So as long as commits find the same list, each key belongs to the same
// partition.
type Partitions struct {
	from mvcc.Timestamp
	list []*Partition // in the order of keys
}

// Of returns the partition that covers a logical key.
func (p *Partitions) Of(key []byte) *Partition {
	i := sort.Search(len(p.list), func(i int) bool { return bytes.Compare(p.list[i].start, key) > 0 })
	return p.list[i-1]
}

// Append adds a record to the batch of the commit at ts. sequence is the number of the record among all records that
// the commit adds to the stream. Readers get the records of a commit in the order of these numbers.
func (p *Partition) Append(b kv.Batch, ts mvcc.Timestamp, sequence uint32, record []byte) error {
	var room [recordKeySize]byte
	return b.Put(p.appendKey(room[:0], Position{ts, sequence}), record)
}

// appendKey appends the key of the record at a position to dst.
func (p *Partition) appendKey(dst []byte, at Position) []byte {
	dst = append(dst, p.prefix...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at.Timestamp))
	return append(binary.BigEndian.AppendUint32(dst, at.Sequence), 0)
}

// positionOf returns the position of the record with this key.
func (p *Partition) positionOf(key []byte) Position {
	rest := key[len(p.prefix):]
	return Position{mvcc.Timestamp(binary.BigEndian.Uint64(rest)), binary.BigEndian.Uint32(rest[8:])}
}

// Wake wakes the readers that wait for this partition. It must be called when records that Append added have become
// visible, or when the partition has ended.
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

// Reshape divides the keys of a stream into partitions anew, from one timestamp on. The function bounds returns the
// sorted keys at which the partitions are divided. A partition whose range does not change continues. Each other
// partition ends, and the new partitions that get its keys are its children. When Reshape returns nil, the change is
// visible. If it returns an error, nothing has changed, or the store has failed. Reshape calls bounds while no other
// Reshape runs, so that the last of several calls uses the newest bounds.
func (l *Log) Reshape(id schema.ChangeStreamID, bounds func() [][]byte) error {
	l.reshaping.Lock()
	defer l.reshaping.Unlock()
	ended, finish := l.reshape(id, bounds())
	if err := finish(); err != nil {
		return err
	}
	for _, p := range ended {
		p.Wake()
	}
	return nil
}

// reshape does the work of Reshape, but does not finish its commit. It returns the partitions that have ended, and the
// function finish, which finishes the commit. The caller must call finish without holding mu, since finish waits for
// commits that may wait for mu.
func (l *Log) reshape(id schema.ChangeStreamID, bounds [][]byte) (ended []*Partition, finish func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[id]
	if s == nil || s.leaving || s.current.cutAt(bounds) {
		return nil, func() error { return nil }
	}
	b := l.cfg.Store.NewBatch()
	defer b.Close()
	b.UseReserve()
	at, pending, err := l.cfg.Oracle.Begin(b)
	if pending == nil {
		return nil, func() error { return err }
	}
	before := s.last
	next, endings := s.cut(bounds, at)
	if err == nil {
		err = putCut(b, next, endings, before)
	}
	if err != nil {
		s.revert(before)
		return nil, func() error { return errors.Join(fmt.Errorf("build partitions: %w", err), pending.Abandon()) }
	}
	if err = b.Commit(); err != nil {
		s.revert(before)
		return nil, func() error { return pending.Finish(err) }
	}
	s.previous, s.current = s.current, next
	for p, e := range endings {
		p.ending.Store(e)
		ended = append(ended, p)
	}
	return ended, func() error { return pending.Finish(nil) }
}

// putCut adds the endings of old partitions and the new partitions to a batch. The new partitions are those whose
// numbers are greater than the parameter before.
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

// revert removes new partitions from the stream. The parameter before is the highest number of a partition that stays.
func (s *stream) revert(before PartitionID) {
	for ; s.last > before; s.last-- {
		delete(s.partitions, s.last)
	}
}

// cutAt reports whether the list of partitions is already divided at exactly these bounds.
func (p *Partitions) cutAt(bounds [][]byte) bool {
	return slices.EqualFunc(p.list[1:], bounds, func(p *Partition, bound []byte) bool { return bytes.Equal(p.start, bound) })
}

// cut returns the list of partitions between the bounds. The parameter at is the timestamp from which the list is
// valid. cut also returns the endings of the old partitions that new ones replace.
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
