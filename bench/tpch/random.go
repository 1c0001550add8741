package tpch

import "math"

// The generator of random numbers of dbgen (S. K. Park and K. W. Miller, "Random number generators: good ones are hard to
// find", 1988).
const (
	multiplier = 16807
	modulus    = math.MaxInt32
)

// stream is the random numbers of one column. Each row has the same number of places in it, however many it uses.
type stream struct {
	seed   int64
	perRow int64
	used   int64 // of the current row
}

// newStream is a column's stream at a row, counted from 0.
func newStream(seed, perRow, row int64) stream {
	s := stream{seed: seed, perRow: perRow}
	s.skip(perRow * row)
	return s
}

// between is a random number from low to high.
func (s *stream) between(low, high int64) int64 {
	s.seed = s.seed * multiplier % modulus
	s.used++
	return low + int64(float64(s.seed)/modulus*float64(high-low+1))
}

// bits is a random number of 31 bits below a negative sign: dbgen asks for one from 0 to 2,147,483,647, and its range of 32
// bits overflows.
func (s *stream) bits() int64 {
	s.seed = s.seed * multiplier % modulus
	s.used++
	return int64(float64(s.seed) / modulus * math.MinInt32)
}

// endRow skips what the row has not used.
func (s *stream) endRow() {
	s.skip(s.perRow - s.used)
	s.used = 0
}

func (s *stream) skip(n int64) {
	for m := int64(multiplier); n > 0; n /= 2 {
		if n%2 == 1 {
			s.seed = s.seed * m % modulus
		}
		m = m * m % modulus
	}
}

const addressCharacters = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,"

// appendAddress appends 10 to 40 random characters, five of each random number.
func (s *stream) appendAddress(dst []byte) []byte {
	bits := int64(0)
	for i := range s.between(10, 40) {
		if i%5 == 0 {
			bits = s.bits()
		}
		dst = append(dst, addressCharacters[bits&63])
		bits >>= 6
	}
	return dst
}

// word is one of a list, by its weight.
func (s *stream) word(w *words) string {
	return w.byWeight[s.between(0, int64(len(w.byWeight))-1)]
}

// comment is a part of the pool of text, from 0.4 to 1.6 times as long as the average.
func (s *stream) comment(pool string, average int64) string {
	shortest, longest := average*4/10, average*16/10
	from := s.between(0, int64(len(pool))-longest)
	return pool[from : from+s.between(shortest, longest)]
}
