package pebble

import (
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// compactions holds the running compactions. It makes a compaction fail if a read of one of its inputs has failed since
// the compaction began.
//
// Pebble 2.1.7 does not always let such a compaction fail. If a compaction cannot read the value of its last key, and
// the value is in a value block, Iter.saveValue (internal/compact) sets the error, and Iter.iterNext clears it at the
// end of the input. Pebble would then write an empty value and delete the input. So after such an error guardedFS
// lets no sync of the compaction's outputs succeed. Pebble reads a value, and reports damage, on the goroutine that
// later writes the value and syncs its table, so the error is noted in time.
//
// Requests read the same files. Their errors make the compaction fail, too, since Pebble does not say whether a
// request or a compaction reads. Pebble then repeats the compaction, so nothing is lost.
//
// Pebble names a compaction's inputs by the numbers of tables. These are also the numbers of their files, because
// Crowfoot has no virtual tables: it neither ingests tables nor excises keys.
type compactions struct {
	mu      sync.Mutex          // its holder never locks Pebble's mutex, which a caller may hold
	running map[int]*compaction // by job number
}

// compaction is a running compaction with the names of its input and output files.
type compaction struct {
	inputs, outputs []string
	err             error // error of the first failed read of an input
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

// made records that a compaction has made an output file. It ignores the tables of flushes, which have no inputs on
// disk.
func (c *compactions) made(i pebble.TableCreateInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.running[i.JobID]; job != nil {
		job.outputs = append(job.outputs, fmt.Sprintf("%s.sst", i.FileNum))
	}
}

// cannotRead records that a read of a table file failed, for each compaction that has this file as an input.
func (c *compactions) cannotRead(file string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, job := range c.running {
		if job.err == nil && slices.Contains(job.inputs, file) {
			job.err = fmt.Errorf("compaction of %s: %w", file, err)
		}
	}
}

// inputError returns an error if the given table file is an output of a compaction that could not read one of its
// inputs.
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

// inputFile is an open table file. It reports failed reads to its field compactions.
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
