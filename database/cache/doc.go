// Package cache holds caches whose entries share one memory budget. A Cache keeps the entries that were used lately,
// within its own limits. A Budget charges the entries of all caches, and the sessions of clients, to one limit. When
// that limit is reached, all caches drop entries that were not used lately.
//
// The package does not know what the entries are, nor when they are no longer valid. The owner of a Cache closes it.
//
// Lock order: a Budget's mutex before a Cache's, since a Budget makes its caches drop entries. A Cache never calls its
// Budget while it holds its own mutex.
//
// Imports of this module: memory.
package cache
