package tpch

import "math"

// Constants of dbgen's generator of random numbers (S. K. Park and K. W. Miller, "Random number generators: good ones
// are hard to find", 1988).
const (
	multiplier = 16807
	modulus    = math.MaxInt32
)

// stream is the sequence of random numbers for one column. Each row has perRow numbers of the sequence, even if it
// uses fewer.
type stream struct {
	seed   int64
	perRow int64
	used   int64 // how many numbers the current row has used
}

// newStream returns the stream of a column, positioned at a row. Rows are counted from 0.
func newStream(seed, perRow, row int64) stream {
	s := stream{seed: seed, perRow: perRow}
	s.skip(perRow * row)
	return s
}

// between returns a random number from low to high.
func (s *stream) between(low, high int64) int64 {
	s.seed = s.seed * multiplier % modulus
	s.used++
	return low + int64(float64(s.seed)/modulus*float64(high-low+1))
}

// bits returns a random number from -2^31 to 0, as dbgen does. dbgen asks for a number from 0 to 2^31-1, but in dbgen
// the width of that range overflows 32 bits and becomes negative.
func (s *stream) bits() int64 {
	s.seed = s.seed * multiplier % modulus
	s.used++
	return int64(float64(s.seed) / modulus * math.MinInt32)
}

// endRow skips those of the row's random numbers that were not used.
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

// appendAddress appends 10 to 40 random characters. It uses each random number for five characters.
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

// word returns a random word of a list. The words' weights are their relative probabilities.
func (s *stream) word(w *words) string {
	return w.byWeight[s.between(0, int64(len(w.byWeight))-1)]
}

// comment returns a random part of the text pool. The part has 0.4 to 1.6 times as many bytes as the parameter average
// says.
func (s *stream) comment(pool string, average int64) string {
	shortest, longest := average*4/10, average*16/10
	from := s.between(0, int64(len(pool))-longest)
	return pool[from : from+s.between(shortest, longest)]
}
