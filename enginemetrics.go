package crowfoot

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// memoryLimit returns the metric that shows how many bytes of memory the server may take.
func memoryLimit(bytes int64) metrics.Samples {
	return func(add func(metrics.Sample)) {
		add(metrics.Sample{Name: "memory_limit_bytes", Help: "Memory that the process may take: --memory.", Kind: prometheus.GaugeValue, Value: float64(bytes)})
	}
}

// engineMetrics returns the metrics of the storage engine. The parameter files is the directory for temporary files of
// queries. If it is not nil, engineMetrics also returns a metric of these files.
func engineMetrics(store *pebble.Store, files *spill.Dir) metrics.Samples {
	return func(add func(metrics.Sample)) {
		m := store.Metrics()
		gauge := func(name, help string, v float64) {
			add(metrics.Sample{Name: "storage_" + name, Help: help, Kind: prometheus.GaugeValue, Value: v})
		}
		counter := func(name, help string, v float64) {
			add(metrics.Sample{Name: "storage_" + name + "_total", Help: help, Kind: prometheus.CounterValue, Value: v})
		}
		gauge("disk_bytes", "Size of all files in use, and of those that wait to be deleted.", float64(m.DiskSize))
		if m.FreeSize >= 0 {
			gauge("disk_free_bytes", "Space that the file system of the data directory has left.", float64(m.FreeSize))
		}
		writable := 0.0
		if m.Writable {
			writable = 1
		}
		gauge("writable", "1 if commits are taken, 0 while they are refused: the disk is full, or fails.", writable)
		counter("refused_commits", "Commits that were refused because the disk was full, or failed.", float64(m.RefusedBatches))
		if files != nil {
			gauge("spill_bytes", "Room that temporary files of queries have claimed.", float64(files.Used()))
		}
		gauge("table_bytes", "Size of the sorted tables that hold the data.", float64(m.TablesSize))
		gauge("tables", "Sorted tables.", float64(m.Tables))
		gauge("memtable_bytes", "Writes that are in the log and in memory, but not in tables.", float64(m.MemTableSize))
		gauge("block_cache_bytes", "Size of the block cache.", float64(m.BlockCacheSize))
		gauge("read_amplification", "Sorted runs that a read may have to look into.", float64(m.ReadAmplification))
		gauge("compaction_debt_bytes", "What compactions have yet to rewrite.", float64(m.CompactionDebt))
		gauge("log_bytes", "Size of the write-ahead log that a restart would read.", float64(m.LogSize))
		counter("compactions", "Compactions that have ended.", float64(m.Compactions))
		counter("compactions_failed", "Compactions that have failed.", float64(m.CompactionsFailed))
		counter("compacted_bytes", "Written by compactions.", float64(m.CompactedSize))
		counter("flushes", "Flushes of memory to tables.", float64(m.Flushes))
		counter("flushed_bytes", "Written by flushes.", float64(m.FlushedSize))
		counter("log_written_bytes", "Written to the write-ahead log.", float64(m.LogWritten))
		counter("block_cache_hits", "Blocks that were found in the cache.", float64(m.BlockCacheHits))
		counter("block_cache_misses", "Blocks that had to be read.", float64(m.BlockCacheMisses))
		counter("damaged_reads", "Reads, of requests or of compactions, that met a damaged block of a table file.", float64(m.DamagedReads))
	}
}
