//go:build linux && cgo

package pebble

// Pebble allocates its blocks with the C library. glibc gives threads up to eight memory arenas for each core, and
// freed memory stays with its arena. So once many threads have read blocks, a block cache of fixed size would take many
// times that size. The constructor below limits glibc to one arena, unless the environment variable MALLOC_ARENA_MAX
// sets the number of arenas (see mallopt(3)). It must run before there are threads.

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
