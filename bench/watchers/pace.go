package watchers

import (
	"math/rand/v2"
	"time"
)

// pace generates the transactions of a load one after the other. For each it says when the transaction is due, and how
// many rows it writes. The same seed gives the same transactions.
type pace struct {
	Load
	rand *rand.Rand
	due  float64 // when the last returned transaction is due, in seconds since the load began
}

func newPace(l Load) *pace { return &pace{Load: l, rand: rand.New(rand.NewPCG(l.Seed, 0))} }

// next returns the next transaction. The mean gap between two transactions corresponds to the rate. The gaps are all
// equal if Even is set, and otherwise exponentially distributed, like those of independent requests.
func (p *pace) next() (due time.Duration, rows int) {
	interval := 1.0
	if !p.Even {
		interval = p.rand.ExpFloat64()
	}
	p.due += interval / p.Transactions
	return time.Duration(p.due * float64(time.Second)), p.rows()
}

// rows returns a random number of rows from 1 to 2m with the mean m. A uniform distribution would have the mean m +
// 1/2. Therefore a number above 1 is reduced by one with the probability m / (2m - 1).
func (p *pace) rows() int {
	m := p.Mutations
	n := 1 + p.rand.IntN(2*m)
	if n > 1 && p.rand.IntN(2*m-1) < m {
		n--
	}
	return n
}

// asked returns the mean number of rows per second that the settings ask for.
func (l Load) asked() float64 { return l.Transactions * float64(l.Mutations) }
