package transfer

import (
	"sync/atomic"
)

// Progress counts how much of an import or an export is done. Any goroutine may read it. If a Progress is nil, its
// methods that count do nothing.
type Progress struct {
	rows        atomic.Int64
	done, total atomic.Int64
}

// Rows returns how many rows this run has copied.
func (p *Progress) Rows() int64 { return p.rows.Load() }

// Fraction returns the fraction of the work that is done, from 0 to 1. It includes the work of earlier runs.
func (p *Progress) Fraction() float64 {
	total := p.total.Load()
	if total == 0 {
		return 0
	}
	return min(float64(p.done.Load())/float64(total), 1)
}

func (p *Progress) addRows(n int64) {
	if p != nil {
		p.rows.Add(n)
	}
}

func (p *Progress) addDone(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

func (p *Progress) addTotal(n int64) {
	if p != nil {
		p.total.Add(n)
	}
}
