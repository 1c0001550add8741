package changestream

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// PartitionID numbers a partition of a stream; numbers rise, and are never given out again.
type PartitionID uint64

// Partition is a range of keys of a database, and a time, whose changes one reader reads.
type Partition struct {
	id     PartitionID
	start  []byte         // the first key
	from   mvcc.Timestamp // when it begins
	prefix []byte         // of the keys of its records

	waiting sync.Mutex
	wake    chan struct{} // closed by Wake; nil if no reader waits
}

func (l *Log) newPartition(stream StreamID, id PartitionID, from mvcc.Timestamp) *Partition {
	return &Partition{id: id, from: from, prefix: recordPrefix(l.cfg.Space, stream, id)}
}

// Partitions are the partitions of a stream at one time. Together they have all keys, each once. A list is never changed: as long as the list
// is the same, so are the partitions of all keys.
type Partitions struct {
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
	return b.Put(p.appendKey(room[:0], ts, sequence), record)
}

func (p *Partition) appendKey(dst []byte, ts mvcc.Timestamp, sequence uint32) []byte {
	dst = append(dst, p.prefix...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(ts))
	return append(binary.BigEndian.AppendUint32(dst, sequence), 0)
}

// Wake wakes the readers: records that Append added are visible now.
func (p *Partition) Wake() {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.wake != nil {
		close(p.wake)
		p.wake = nil
	}
}

// awaken returns a channel that the next Wake closes.
func (p *Partition) awaken() <-chan struct{} {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.wake == nil {
		p.wake = make(chan struct{})
	}
	return p.wake
}
