package kv

import (
	"errors"
	"fmt"
)

// ErrRefused is wrapped by the error of a commit that the store refuses for the time being, for example because the
// disk is full. Nothing of the batch was written. The store may accept later batches.
var ErrRefused = errors.New("the store takes no batch")

// The errors below say what happened to the store. Package usererror turns them into texts for users.

// DiskFullError says that the file system of the store's directory has too little space for a batch. Free is the number
// of free bytes. Need is the number of bytes that would have to be free: for the batch, for the batches that are being
// written, and for the space that the store keeps free.
type DiskFullError struct {
	Dir        string
	Free, Need int64
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("the disk of %s is full: %d bytes are free, %d are needed", e.Dir, e.Free, e.Need)
}

// DiskRefusesError says that the file system of the store's directory refused a write although it reports free space,
// for example because of a quota or a limit on the number of files.
type DiskRefusesError struct {
	Dir   string
	Cause error
}

func (e *DiskRefusesError) Error() string {
	return fmt.Sprintf("the disk of %s is full: %v", e.Dir, e.Cause)
}

// CompactionError says that compactions of the store's files fail. The store refuses further batches, because each
// would add files that are not merged, and so slow down reads.
type CompactionError struct {
	Dir   string
	Cause error
}

func (e *CompactionError) Error() string {
	return fmt.Sprintf("the files of %s cannot be merged: %v", e.Dir, e.Cause)
}

// DamagedError says that a read needs data in a damaged file of the store's directory. File is the name of that file.
type DamagedError struct{ File string }

func (e *DamagedError) Error() string { return "stored data is damaged, in " + e.File }

// FailedError says that the store has failed: it can no longer promise to keep what is written. Batches that were
// acknowledged before are durable.
type FailedError struct{ Cause error }

func (e *FailedError) Error() string { return e.Cause.Error() }
