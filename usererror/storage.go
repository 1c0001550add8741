package usererror

import "google.golang.org/grpc/codes"

// Errors of the disk. They do not say when a request may come again, for room on a disk comes when an operator makes it. The official Go client
// sends a Commit that got RESOURCE_EXHAUSTED again all the same, with growing pauses, until its deadline.

// DiskFull: the file system of the data directory has free bytes left. A commit is taken where need are, with what it and those under way write.
func DiskFull(dir string, free, need int64) *Error {
	return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %d MiB are free, and commits are taken where at least %d MiB are. "+
		"Writes are refused until there is room; reads go on.", dir, free>>20, (need+1<<20-1)>>20)
}

// DiskRefuses: the file system of the data directory has refused to keep more, for want of room that its figures do not show: a quota, or the
// number of files.
func DiskRefuses(dir string, cause error) *Error {
	return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %v. Writes are refused until there is room; reads go on.", dir, cause)
}

// CompactionFails: files cannot be merged, and more writes would pile up more of them than reads can bear.
func CompactionFails(dir string, cause error) *Error {
	return newError(codes.Unavailable, "The server cannot merge the files of its data directory %s: %v. Writes are refused until it can; reads go on.", dir, cause)
}

// DataDamaged: what the request needs lies in a file that is damaged. DATA_LOSS is the canonical code of
// "unrecoverable data loss or corruption" (https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto); clients do not
// send the request again, as some do after INTERNAL.
func DataDamaged(file string) *Error {
	return newError(codes.DataLoss, "Stored data that this request needs is damaged, in %s of the data directory.", file)
}

// StorageFailed: the storage engine can no longer promise that what it writes is kept. What was acknowledged before is on disk.
func StorageFailed(cause error) *Error {
	return newError(codes.Internal, "The server's storage has failed, and must be started again: %v. Every commit that was acknowledged is on disk.", cause)
}
