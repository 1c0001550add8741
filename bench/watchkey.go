package bench

// Changes are numbered from 0. The number of a change gives the key of its row, and the key gives the number, so that a change which a watcher
// delivers is found without a map. Rows with neighbouring numbers have keys that are far apart, as those of the Java application, which draws them at random.

const (
	// keySpace is how many keys there are: those of Java's Integer that are not negative, from which the Java application draws.
	keySpace = 1 << 31
	// keyFactor is odd, so that multiplication modulo a power of two is a permutation; it is 2^31 divided by the golden ratio, which
	// scatters numbers in a row (Knuth, The Art of Computer Programming, 6.4).
	keyFactor = 1327217885
)

// keyInverse undoes keyFactor: their product is 1 modulo 2^31. Each step of Newton's method doubles the bits that are right.
var keyInverse = func() uint32 {
	inverse := uint32(keyFactor) // right in three bits
	for range 4 {
		inverse *= 2 - keyFactor*inverse
	}
	return inverse
}()

// singerKey is the key of the row that a change writes.
func singerKey(number int64) int64 { return int64(uint32(number) * keyFactor % keySpace) }

// singerNumber is the number of the change that has written a row; -1 if no change can have written it.
func singerNumber(key int64) int64 {
	if key < 0 || key >= keySpace {
		return -1
	}
	return int64(uint32(key) * keyInverse % keySpace)
}
