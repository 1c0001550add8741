package live

import (
	"slices"
	"sync"
	"time"
)

// PartitionedDML is a running partitioned DML statement.
type PartitionedDML struct {
	all *partitionedDMLs

	mu       sync.Mutex
	progress Progress
}

// Progress is the progress of a partitioned DML statement.
type Progress struct {
	SQL         string
	Fingerprint int64 // fingerprint of the SQL text
	Session     string
	Start       time.Time
	Updated     time.Time
	Total       int64 // known partitions
	Complete    int64 // completed partitions
	Trivial     int64 // completed partitions in which no row changed
	Rows        int64 // changed rows
}

// partitionedDMLs lists the running partitioned DML statements, the oldest first.
type partitionedDMLs struct {
	mu   sync.Mutex
	list []*PartitionedDML
}

// StartPartitioned adds a partitioned DML statement with the given number of partitions to the list. The caller must
// call Finish.
func (l *Lists) StartPartitioned(sql string, fingerprint int64, session string, partitions int64, now time.Time) *PartitionedDML {
	d := &PartitionedDML{all: &l.partitioned, progress: Progress{
		SQL: sql, Fingerprint: fingerprint, Session: session, Start: now, Updated: now, Total: partitions,
	}}
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.list = append(d.all.list, d)
	return d
}

// Split adds partitions that were not known at the start.
func (d *PartitionedDML) Split(more int64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress.Total += more
	d.progress.Updated = now
}

// Advance counts a completed partition and the number of rows it changed.
func (d *PartitionedDML) Advance(rows int64, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress.Complete++
	if rows == 0 {
		d.progress.Trivial++
	}
	d.progress.Rows += rows
	d.progress.Updated = now
}

// Finish removes the statement from the list.
func (d *PartitionedDML) Finish() {
	d.all.mu.Lock()
	defer d.all.mu.Unlock()
	d.all.list = slices.DeleteFunc(d.all.list, func(o *PartitionedDML) bool { return o == d })
}

// Partitioned returns the progress of each running partitioned DML statement, the oldest first.
func (l *Lists) Partitioned() []Progress {
	l.partitioned.mu.Lock()
	defer l.partitioned.mu.Unlock()
	var all []Progress
	for _, d := range l.partitioned.list {
		d.mu.Lock()
		all = append(all, d.progress)
		d.mu.Unlock()
	}
	return all
}
