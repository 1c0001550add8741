package bench

import (
	"math/rand/v2"
	"time"
)

// pace gives the transactions of a load one after the other: when each is due, and how many rows it writes. The same seed gives the same
// transactions.
type pace struct {
	Load
	rand *rand.Rand
	due  float64 // seconds since the load began
}

func newPace(l Load) *pace { return &pace{Load: l, rand: rand.New(rand.NewPCG(l.Seed, 0))} }

// next is the transaction that follows. The times between two are exponentially distributed, as of requests that come independently of each other,
// or all equal; either way they average to the rate.
func (p *pace) next() (due time.Duration, rows int) {
	gap := 1.0
	if !p.Even {
		gap = p.rand.ExpFloat64()
	}
	p.due += gap / p.Transactions
	return time.Duration(p.due * float64(time.Second)), p.rows()
}

// rows is a size from 1 to 2m whose average is m. That of all sizes alike would be m + 1/2, so m of the 2m - 1 sizes above 1 shrink by one.
func (p *pace) rows() int {
	m := p.Mutations
	n := 1 + p.rand.IntN(2*m)
	if n > 1 && p.rand.IntN(2*m-1) < m {
		n--
	}
	return n
}

// asked is how many rows per second the load has, on average.
func (l Load) asked() float64 { return l.Transactions * float64(l.Mutations) }
