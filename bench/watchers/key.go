package watchers

// Changes are numbered from 0. The key of a row is computed from the number of the change that writes the row, and this
// number can be computed from the key. So the change of a delivered row is found without a map. The keys of successive
// changes are far apart, as in the benchmark application of Google's Spanner Change Watcher, which draws keys at
// random.

const (
	// keySpace is the number of different keys. Keys are non-negative 32-bit integers, as in the benchmark application
	// of Google's Spanner Change Watcher.
	keySpace = 1 << 31
	// keyFactor is the factor between the number of a change and its key. It is odd, so that multiplication by it
	// modulo a power of two is a permutation. It is 2^31 divided by the golden ratio, because multiplication by this
	// number scatters consecutive numbers (Knuth, The Art of Computer Programming, 6.4).
	keyFactor = 1327217885
)

// keyInverse is the inverse of keyFactor: the product of the two is 1 modulo 2^31. It is computed by Newton's method,
// each step of which doubles the number of correct bits.
var keyInverse = func() uint32 {
	inverse := uint32(keyFactor) // three bits are correct
	for range 4 {
		inverse *= 2 - keyFactor*inverse
	}
	return inverse
}()

// singerKey returns the key of the row that a change writes.
func singerKey(number int64) int64 { return int64(uint32(number) * keyFactor % keySpace) }

// singerNumber returns the number of the change that wrote a row. It returns -1 if no change can have written it.
func singerNumber(key int64) int64 {
	if key < 0 || key >= keySpace {
		return -1
	}
	return int64(uint32(key) * keyInverse % keySpace)
}
