package kv

// Format is the number of the format of all stored data: the engine's files and the records in them. A release opens
// stores of every format up to LastFormat. Package database has the steps that rewrite records, and kv/pebble upgrades
// the engine's files. A release needs a new format if older releases could not read, or would misread, what it writes.
//
//	1  the first
//	2  adds records of sessions, of the outcomes of commits and of running operations. A schema version is stored as
//	   its changes, where format 1 stores a whole catalog. A separate file records how much of the log was synced
//	   (see kv/pebble)
//	3  adds change streams to schema versions. Their records are stored together with the commits that they describe
//	4  adds views, sequences, roles and other objects to schema versions. It also adds two properties of columns:
//	   identity, and ON UPDATE. It stores the counters of sequences. Releases of format 3 would ignore all of these:
//	   they would write rows without keys from sequences, and let roles do anything
type Format int

const (
	FirstFormat Format = 1
	LastFormat  Format = 4
)
