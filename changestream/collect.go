package changestream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// Collect deletes the records of a stream whose commit timestamps are below the parameter before, and the partitions
// that ended before this timestamp. Readers that have not yet read the deleted records fail. Calls must not overlap.
func (l *Log) Collect(id schema.ChangeStreamID, before mvcc.Timestamp) error {
	s, err := l.find(id)
	if s == nil || err != nil || before <= mvcc.Timestamp(s.earliest.Load()) {
		return nil
	}
	if err := l.collect(s, before); err != nil {
		return fmt.Errorf("collect records of change stream: %w", err)
	}
	return nil
}

// collect does the work of Collect. It finds the old records before it locks mu, since commits wait while mu is
// locked.
func (l *Log) collect(s *stream, before mvcc.Timestamp) error {
	b := l.cfg.Store.NewBatch()
	defer b.Close()
	b.UseReserve() // the batch frees disk space, so the store must accept it even if the disk is nearly full
	l.mu.RLock()
	partitions := slices.Collect(maps.Values(s.partitions))
	l.mu.RUnlock()
	for _, p := range partitions {
		if err := p.deleteBefore(b, before); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[s.id] != s || s.leaving {
		return nil // the stream was dropped, or is being dropped
	}
	s.earliest.Store(int64(before))
	err := s.put(b)
	for _, p := range partitions {
		if e := p.ending.Load(); e != nil && e.until < before {
			delete(s.partitions, p.id)
			err = cmp.Or(err, b.Delete(p.key()))
		}
	}
	return cmp.Or(err, b.CommitNoSync())
}

// deleteBefore adds to b the deletion of the partition's records with timestamps below ts, if there are any.
func (p *Partition) deleteBefore(b kv.Batch, ts mvcc.Timestamp) error {
	begin, end := p.appendKey(nil, Position{}), p.appendKey(nil, Position{Timestamp: ts})
	it, err := p.stream.log.cfg.Store.NewIter(begin, end)
	if err != nil {
		return err
	}
	some := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !some {
		return err
	}
	return b.DeleteRange(begin, end)
}
