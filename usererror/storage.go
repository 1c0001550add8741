package usererror

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
)

// ofStorage returns the error for users that says the same as err, or nil if err is not an error of package kv.
//
// The errors about the disk contain no time after which to repeat the request, because only an operator can free space
// on a disk. The official Go client repeats a Commit that failed with RESOURCE_EXHAUSTED all the same, with growing
// pauses, until its deadline.
func ofStorage(err error) *Error {
	var full *kv.DiskFullError
	var refuses *kv.DiskRefusesError
	var compaction *kv.CompactionError
	var damaged *kv.DamagedError
	var failed *kv.FailedError
	switch {
	case errors.As(err, &full):
		return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %d MiB are free, and commits are taken where at least %d MiB are. "+
			"Writes are refused until there is room; reads go on.", full.Dir, full.Free>>20, (full.Need+1<<20-1)>>20)
	case errors.As(err, &refuses):
		return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %v. Writes are refused until there is room; reads go on.", refuses.Dir, refuses.Cause)
	case errors.As(err, &compaction):
		return newError(codes.Unavailable, "The server cannot merge the files of its data directory %s: %v. Writes are refused until it can; reads go on.", compaction.Dir, compaction.Cause)
	case errors.As(err, &damaged):
		return DataDamaged(damaged.File)
	case errors.As(err, &failed):
		return newError(codes.Internal, "The server's storage has failed, and must be started again: %v. Every commit that was acknowledged is on disk.", failed.Cause)
	}
	return nil
}

// DataDamaged reports that the request needs data in a damaged file. Its code, DATA_LOSS, is the canonical one for
// "unrecoverable data loss or corruption" (https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto).
// After DATA_LOSS, clients do not send the request again. After INTERNAL, some clients would.
func DataDamaged(file string) *Error {
	return newError(codes.DataLoss, "Stored data that this request needs is damaged, in %s of the data directory.", file)
}
