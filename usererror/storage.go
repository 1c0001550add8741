package usererror

import "google.golang.org/grpc/codes"

// Errors of the disk. They do not say when a request may be repeated, because only an operator can make space on a
// disk. The official Go client repeats a Commit that failed with RESOURCE_EXHAUSTED all the same, with growing pauses,
// until its deadline.

// DiskFull reports that the file system of the data directory has too little space: free bytes are left. A commit needs
// need free bytes, which include the writes of this commit and of those under way.
func DiskFull(dir string, free, need int64) *Error {
	return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %d MiB are free, and commits are taken where at least %d MiB are. "+
		"Writes are refused until there is room; reads go on.", dir, free>>20, (need+1<<20-1)>>20)
}

// DiskRefuses reports that the file system of the data directory refused a write for lack of space that its figures do
// not show, such as a quota or the number of files.
func DiskRefuses(dir string, cause error) *Error {
	return newError(codes.ResourceExhausted, "The disk of the server's data directory %s is full: %v. Writes are refused until there is room; reads go on.", dir, cause)
}

// CompactionFails reports that files cannot be merged. Further writes would leave more unmerged files than reads can
// bear.
func CompactionFails(dir string, cause error) *Error {
	return newError(codes.Unavailable, "The server cannot merge the files of its data directory %s: %v. Writes are refused until it can; reads go on.", dir, cause)
}

// DataDamaged reports that the request needs data in a damaged file. DATA_LOSS is the canonical code of "unrecoverable
// data loss or corruption" (https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto). Clients do not
// send the request again, as some do after INTERNAL.
func DataDamaged(file string) *Error {
	return newError(codes.DataLoss, "Stored data that this request needs is damaged, in %s of the data directory.", file)
}

// StorageFailed reports that the storage engine can no longer promise to keep what it writes. Data that was
// acknowledged before is on disk.
func StorageFailed(cause error) *Error {
	return newError(codes.Internal, "The server's storage has failed, and must be started again: %v. Every commit that was acknowledged is on disk.", cause)
}
