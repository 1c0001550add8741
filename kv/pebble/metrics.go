package pebble

// Metrics holds the current sizes in bytes of the parts of the store, and counts of the work done since the store was
// opened.
type Metrics struct {
	DiskSize       uint64 // all files in use or waiting to be deleted
	TablesSize     uint64 // the sorted tables that hold the data
	Tables         int64
	MemTableSize   uint64 // writes that are in the log and in memory, but not yet in tables
	BlockCacheSize int64

	ReadAmplification int // the number of sorted runs that a read may have to look into
	CompactionDebt    uint64
	Compactions       int64
	CompactionsFailed int64
	CompactedSize     uint64 // bytes that compactions have written
	Flushes           int64
	FlushedSize       uint64 // bytes that flushes have written
	LogSize           uint64 // the part of the write-ahead log that the store would read if it were opened again
	LogWritten        uint64 // bytes written to the write-ahead log
	BlockCacheHits    int64
	BlockCacheMisses  int64
	FreeSize          int64 // the free bytes of the directory's file system; -1 if unknown
	Writable          bool  // the store accepts batches
	RefusedBatches    int64 // batches refused with kv.ErrRefused
	DamagedReads      int64 // the number of reads, by requests or compactions, that found a damaged block
}

// Metrics returns the current metrics.
func (s *Store) Metrics() Metrics {
	p := s.db.Metrics()
	m := Metrics{
		DiskSize:          p.DiskSpaceUsage(),
		MemTableSize:      p.MemTable.Size,
		BlockCacheSize:    p.BlockCache.Size,
		ReadAmplification: p.ReadAmp(),
		CompactionDebt:    p.Compact.EstimatedDebt,
		Compactions:       p.Compact.Count,
		CompactionsFailed: p.Compact.FailedCount,
		Flushes:           p.Flush.Count,
		LogSize:           p.WAL.Size,
		LogWritten:        p.WAL.BytesWritten,
		BlockCacheHits:    p.BlockCache.Hits,
		BlockCacheMisses:  p.BlockCache.Misses,
		FreeSize:          s.disk.freeSize(),
		Writable:          s.Writable() == nil,
		RefusedBatches:    s.disk.refusals.Load(),
		DamagedReads:      s.work.damage.count(),
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		m.Tables += l.TablesCount
		m.TablesSize += uint64(l.TablesSize)
		m.CompactedSize += l.TableBytesCompacted
		m.FlushedSize += l.TableBytesFlushed
	}
	return m
}
