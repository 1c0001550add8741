package changestream

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// stream holds the partitions of one change stream. The mu of its log guards the fields that are not atomic.
type stream struct {
	log *Log
	id  schema.ChangeStreamID
	// The stream has all its records from the timestamp earliest on. Collect raises earliest before it deletes records.
	earliest atomic.Int64

	partitions map[PartitionID]*Partition // all partitions that Collect has not deleted
	last       PartitionID                // the highest number that a partition got so far
	current    *Partitions
	previous   *Partitions // the list before the last Reshape; nil if there was none since the start of the server
	leaving    bool        // a batch that drops the stream is being committed, so nothing else may be stored for it

	ended chan struct{} // closed when the stream is dropped or the log is closed
	why   error         // the error of the readers; set before the channel is closed; nil if the stream was dropped
}

// streamRecord is a stream as stored.
type streamRecord struct{ Earliest mvcc.Timestamp }

func (l *Log) emptyStream(id schema.ChangeStreamID, earliest mvcc.Timestamp) *stream {
	s := &stream{log: l, id: id, partitions: map[PartitionID]*Partition{}, ended: make(chan struct{})}
	s.earliest.Store(int64(earliest))
	return s
}

// newStream returns a stream whose partitions are divided at the sorted keys in bounds. The parameter from is the
// timestamp at which the partitions begin.
func (l *Log) newStream(id schema.ChangeStreamID, from mvcc.Timestamp, bounds [][]byte) *stream {
	s := l.emptyStream(id, from)
	s.current = &Partitions{from: from}
	for i := range len(bounds) + 1 {
		start, end := between(bounds, i)
		s.current.list = append(s.current.list, s.begin(start, end, from))
	}
	return s
}

// between returns the i-th of the key ranges into which the sorted keys in bounds divide all keys. The start of the
// first range and the end of the last one are nil.
func between(bounds [][]byte, i int) (start, end []byte) {
	if i > 0 {
		start = bounds[i-1]
	}
	if i < len(bounds) {
		end = bounds[i]
	}
	return start, end
}

// begin adds a partition with the next number to the stream.
func (s *stream) begin(start, end []byte, from mvcc.Timestamp) *Partition {
	s.last++
	p := s.partition(s.last, &partitionRecord{From: from, Start: start, End: end})
	s.partitions[p.id] = p
	return p
}

// end ends the stream's readers. The parameter why is the error that they return. If it is nil, they return the error
// for a dropped stream.
func (s *stream) end(why error) {
	select {
	case <-s.ended:
	default:
		s.why = why
		close(s.ended)
	}
}

func (s *stream) put(b kv.Batch) error {
	return putJSON(b, s.key(), streamRecord{mvcc.Timestamp(s.earliest.Load())})
}

func (s *stream) key() []byte { return append(keyOf(streamName, s.log.cfg.Space, uint64(s.id)), 0) }

// erase adds to b the deletion of all that is stored for the stream.
func (s *stream) erase(b kv.Batch) error {
	return errors.Join(
		deletePrefix(b, keyOf(recordName, s.log.cfg.Space, uint64(s.id))),
		deletePrefix(b, keyOf(partitionName, s.log.cfg.Space, uint64(s.id))),
		b.Delete(s.key()),
	)
}

// load reads all streams.
func (l *Log) load() error {
	err := each(l.cfg.Store, keyOf(streamName, l.cfg.Space), func(rest, data []byte) error {
		var r streamRecord
		if err := json.Unmarshal(data, &r); err != nil || len(rest) != 8 {
			return fmt.Errorf("read stream %x: %w", rest, err)
		}
		id := schema.ChangeStreamID(binary.BigEndian.Uint64(rest))
		l.streams[id] = l.emptyStream(id, r.Earliest)
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range l.streams {
		if err := s.load(); err != nil {
			return err
		}
	}
	return nil
}

// load reads the stored partitions of the stream.
func (s *stream) load() error {
	s.current = &Partitions{}
	children := map[*Partition][]PartitionID{}
	err := each(s.log.cfg.Store, keyOf(partitionName, s.log.cfg.Space, uint64(s.id)), func(rest, data []byte) error {
		r := new(partitionRecord)
		if err := json.Unmarshal(data, r); err != nil || len(rest) != 8 {
			return fmt.Errorf("read partition %x: %w", rest, err)
		}
		p := s.partition(PartitionID(binary.BigEndian.Uint64(rest)), r)
		s.partitions[p.id], s.last = p, max(s.last, p.id)
		if r.Until == 0 {
			s.current.list = append(s.current.list, p)
			s.current.from = max(s.current.from, p.from)
			return nil
		}
		children[p] = r.Children
		return nil
	})
	if err != nil {
		return err
	}
	for p, ids := range children {
		e := p.ending.Load()
		for _, id := range ids {
			e.children = append(e.children, s.partitions[id])
		}
	}
	slices.SortFunc(s.current.list, func(a, b *Partition) int { return bytes.Compare(a.start, b.start) })
	return nil
}

// at returns the partitions that live at ts, in the order of keys. ts must not be above the oracle's watermark.
func (s *stream) at(ts mvcc.Timestamp) (list []*Partition) {
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	for _, p := range s.partitions {
		if p.livesAt(ts) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Partition) int { return bytes.Compare(a.start, b.start) })
	return list
}
