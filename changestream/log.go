package changestream

import (
	"encoding/binary"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// StreamID numbers a change stream of a database for life.
type StreamID uint64

// Config is what a Log needs from outside.
type Config struct {
	Space mvcc.Space // of the database
	Store kv.Store
}

// Log is the change streams of one database. It may be used by many goroutines.
type Log struct {
	cfg Config

	mu      sync.RWMutex
	streams map[StreamID]*stream
}

// stream is the partitions of one change stream.
type stream struct {
	id      StreamID
	current *Partitions
}

// Open opens the log of a database.
func Open(cfg Config) (*Log, error) {
	return &Log{cfg: cfg, streams: map[StreamID]*stream{}}, nil
}

// Create begins a stream at a timestamp: with one partition.
func (l *Log) Create(id StreamID, from mvcc.Timestamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.newPartition(id, 1, from)
	l.streams[id] = &stream{id: id, current: &Partitions{list: []*Partition{p}}}
}

// At is the partitions of a stream that live at the timestamp of a commit that is not visible yet. It is nil if there is no such stream.
func (l *Log) At(id StreamID, ts mvcc.Timestamp) *Partitions {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.streams[id]
	if s == nil {
		return nil
	}
	return s.current
}

const (
	recordName    = "changestream/record/"
	recordKeySize = 4 + len(recordName) + 4 + 8 + 8 + 8 + 4 + 1
)

// recordPrefix begins the keys of all records of a partition.
func recordPrefix(space mvcc.Space, stream StreamID, partition PartitionID) []byte {
	key := append(make([]byte, 4, recordKeySize), recordName...)
	key = binary.BigEndian.AppendUint32(key, uint32(space))
	key = binary.BigEndian.AppendUint64(key, uint64(stream))
	return binary.BigEndian.AppendUint64(key, uint64(partition))
}
