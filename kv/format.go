package kv

// Format says which form everything stored has: the engine's files and the records in them. A release
// opens stores of every format up to LastFormat: package database has the steps that rewrite records, kv/pebble the
// engine's part. A new format is needed if an older release could not read, or would misread, what this one writes.
//
//	1  the first
//	2  sessions, outcomes of commits and running operations are stored, which format 1 has none of; a schema version is stored as what it
//	   changes, in format 1 as a whole catalog; what was synced is noted in a file of its own (see kv/pebble)
//	3  schema versions have change streams, whose records are stored with the commits that they are about; format 2 has none of both
//	4  schema versions have views, sequences, roles and other objects beside tables, and columns have properties that say how values are made
//	   (identity, ON UPDATE); the counters of sequences are stored. Releases of format 3 would take no notice of any of them: they would write
//	   rows without keys from sequences, and let roles do anything
type Format int

const (
	FirstFormat Format = 1
	LastFormat  Format = 4
)
