package stats

// operationSums is the number of sums of a table's or column's tally: one for each Op up to OpDelete.
const operationSums = int(OpDelete) + 1

func operationWeight(t *tally) int64 { return t.sums[0] + t.sums[1] + t.sums[2] + t.sums[3] }

// operations counts accesses by their hash. It adds these counts up by table and column (addTo) only when it is full
// or when the totals are needed. That is cheaper than doing so for each access, because many executions share the few
// different accesses to a table. An index counts as a table of its own, and a write to a table also counts as a write
// to each of its indexes: https://cloud.google.com/spanner/docs/introspection/table-operations-statistics.
type operations struct {
	counts map[uint64]*accessCount
	free   []*accessCount
}

type accessCount struct {
	access *Access
	n      int64
}

// count counts one operation. full is true if the counts have reached their limit, so that the caller must call addTo.
func (o *operations) count(a *Access) (full bool) {
	c := o.counts[a.hash]
	if c == nil {
		c = o.add(a)
	}
	c.n++
	return len(o.counts) >= boardAccesses
}

func (o *operations) add(a *Access) *accessCount {
	if o.counts == nil {
		o.counts = map[uint64]*accessCount{}
	}
	c := new(accessCount)
	if n := len(o.free); n > 0 {
		c = o.free[n-1]
		o.free = o.free[:n-1]
	}
	*c = accessCount{access: a}
	o.counts[a.hash] = c
	return c
}

// addTo adds the counts to the boards of tables and columns, and resets the counts.
func (o *operations) addTo(tables, columns *board) {
	for _, c := range o.counts {
		c.access.addTo(tables, columns, c.n)
		c.access = nil
		o.free = append(o.free, c)
	}
	clear(o.counts)
}

func (b *board) operated(s subject, op Op, n int64) {
	key := b.family.key(&s)
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, s)
	}
	t.sums[op] += n
}
