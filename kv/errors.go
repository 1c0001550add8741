package kv

import (
	"errors"
	"fmt"
)

// ErrRefused is in the error chain of a Commit that the store refuses for the time being, for example because the disk is full. Nothing of
// the batch was written. The store may accept later batches.
var ErrRefused = errors.New("the store takes no batch")

// The errors below say what happened to the store. Package usererror has their texts for users.

// DiskFullError says that the file system of the store's directory has too little space for a batch: it has Free bytes
// left, and the batch and those under way need Need bytes.
type DiskFullError struct {
	Dir        string
	Free, Need int64
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("the disk of %s is full: %d bytes are free, %d are needed", e.Dir, e.Free, e.Need)
}

// DiskRefusesError says that the file system of the store's directory refused a write for lack of space that its figures
// do not show, such as a quota or the number of files.
type DiskRefusesError struct {
	Dir   string
	Cause error
}

func (e *DiskRefusesError) Error() string {
	return fmt.Sprintf("the disk of %s is full: %v", e.Dir, e.Cause)
}

// CompactionError says that the files of the store's directory cannot be merged. Further batches would leave more
// unmerged files than reads can bear.
type CompactionError struct {
	Dir   string
	Cause error
}

func (e *CompactionError) Error() string {
	return fmt.Sprintf("the files of %s cannot be merged: %v", e.Dir, e.Cause)
}

// DamagedError says that a read needs data in a damaged file of the store's directory. File says which file.
type DamagedError struct{ File string }

func (e *DamagedError) Error() string { return "stored data is damaged, in " + e.File }

// FailedError says that the store can no longer promise to keep what it writes. What it acknowledged before is durable.
type FailedError struct{ Cause error }

func (e *FailedError) Error() string { return e.Cause.Error() }
