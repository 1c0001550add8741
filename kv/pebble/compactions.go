package pebble

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// compactions are those that run. A compaction fails if a read of one of its inputs has failed since it began.
//
// Pebble 2.1.7 does not always see to that itself. If a compaction cannot read the value of its last key, and the value is in a block of values,
// Iter.saveValue (internal/compact) sets the error, and Iter.iterNext clears it at the end of the input: Pebble would write an empty value, and then delete
// the input. So the tables that the compaction has made cannot be synced any more. Pebble reads a value, and reports damage, on the
// goroutine that later writes the value and syncs its table, so the error is noted in time.
//
// Requests read the same files, and their errors count as well, since Pebble does not say who reads. The compaction is tried again.
//
// Pebble names a compaction's inputs by the numbers of tables. Those are the numbers of their files, as Crowfoot has no virtual tables: it neither
// ingests tables nor excises keys.
type compactions struct {
	mu      sync.Mutex // locked after Pebble's
	running map[int]*compaction
}

// compaction is a job of Pebble's, with the names of the table files that it reads and of those that it has made.
type compaction struct {
	inputs, outputs []string
	err             error // of the first read of an input that failed
}

func (c *compactions) begin(i pebble.CompactionInfo) {
	job := &compaction{}
	for _, level := range i.Input {
		for _, table := range level.Tables {
			job.inputs = append(job.inputs, fmt.Sprintf("%s.sst", table.FileNum))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[int]*compaction{}
	}
	c.running[i.JobID] = job
}

func (c *compactions) end(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
}

// made notes a new table. Those of flushes have no inputs on disk.
func (c *compactions) made(i pebble.TableCreateInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.running[i.JobID]; job != nil {
		job.outputs = append(job.outputs, fmt.Sprintf("%s.sst", i.FileNum))
	}
}

// cannotRead notes that a read of a table file failed.
func (c *compactions) cannotRead(file string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range c.running {
		if job.err == nil && slices.Contains(job.inputs, file) {
			job.err = fmt.Errorf("compaction of %s: %w", file, err)
		}
	}
}

// inputError is why a table file that a compaction has made must not be kept.
func (c *compactions) inputError(file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range c.running {
		if slices.Contains(job.outputs, file) {
			return job.err
		}
	}
	return nil
}

// inputFile is a table file that is read.
type inputFile struct {
	vfs.File
	name        string
	compactions *compactions
}

// ReadAt implements vfs.File.
func (f *inputFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	if err != nil {
		f.compactions.cannotRead(f.name, err)
	}
	return n, err
}
