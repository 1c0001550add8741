//go:build linux && cgo

package pebble

// Pebble's blocks are memory of the C library. glibc gives threads up to eight arenas a core, and memory that is given back stays with its arena: the blocks of
// a cache of fixed size take many times that size once many threads have read them. So there is one arena, unless the environment says how many
// (mallopt(3)). That must be said before there are threads.

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
__attribute__((constructor)) static void one_arena(void) {
	if (getenv("MALLOC_ARENA_MAX") == NULL)
		mallopt(M_ARENA_MAX, 1);
}
#endif
*/
import "C"
