package txn

// rangeTree holds the requests for ranges, granted or waiting, ordered by start:
// a treap whose subtrees know their greatest end, so that finding the k requests
// that overlap a range costs O(log n + k).
type rangeTree struct {
	root *rangeNode
	seed uint64
}

type rangeNode struct {
	r           *request
	maxEnd      string
	priority    uint64 // greater than that of both children
	left, right *rangeNode
}

// before orders by start; requests with the same one lie anywhere to the right.
func (n *rangeNode) before(start string) bool { return n.r.start < start }

func (n *rangeNode) update() {
	n.maxEnd = n.r.end
	if n.left != nil {
		n.maxEnd = max(n.maxEnd, n.left.maxEnd)
	}
	if n.right != nil {
		n.maxEnd = max(n.maxEnd, n.right.maxEnd)
	}
}

// each calls f for every range that overlaps r, until it returns false.
func (t *rangeTree) each(r *request, f func(*request) bool) {
	t.root.each(r, f)
}

func (n *rangeNode) each(r *request, f func(*request) bool) bool {
	if n == nil || n.maxEnd <= r.start {
		return true
	}
	if !n.left.each(r, f) {
		return false
	}
	// Everything from here to the right starts at or after n.
	if n.r.start > r.start && (r.isPoint() || n.r.start >= r.end) {
		return true
	}
	if n.r.overlaps(r) && !f(n.r) {
		return false
	}
	return n.right.each(r, f)
}

func (t *rangeTree) insert(r *request) {
	t.seed = t.seed*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator: priorities need only be spread
	left, right := split(t.root, r.start)
	n := &rangeNode{r: r, priority: t.seed}
	n.update()
	t.root = join(join(left, n), right)
}

// split parts a tree into what starts before start and the rest.
func split(n *rangeNode, start string) (left, right *rangeNode) {
	if n == nil {
		return nil, nil
	}
	if n.before(start) {
		n.right, right = split(n.right, start)
		left = n
	} else {
		left, n.left = split(n.left, start)
		right = n
	}
	n.update()
	return left, right
}

// join is the inverse: everything in left starts before, or where, right does.
func join(left, right *rangeNode) *rangeNode {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.priority > right.priority:
		left.right = join(left.right, right)
		left.update()
		return left
	default:
		right.left = join(left, right.left)
		right.update()
		return right
	}
}

// stretch makes a range in the tree longer by one that continues it on either side.
func (t *rangeTree) stretch(r, by *request) {
	if by.start == r.end {
		r.end = by.end
		t.root.raise(r)
		return
	}
	t.remove(r)
	r.start = by.start
	t.insert(r)
}

// raise lets the subtrees that hold r know that its end has gone up.
func (n *rangeNode) raise(r *request) (found bool) {
	if n == nil {
		return false
	}
	found = n.r == r ||
		n.r.start >= r.start && n.left.raise(r) || // those with r's start may be on either side of an equal one
		n.r.start <= r.start && n.right.raise(r)
	if found {
		n.maxEnd = max(n.maxEnd, r.end)
	}
	return found
}

func (t *rangeTree) remove(r *request) { t.root, _ = t.root.remove(r) }

func (n *rangeNode) remove(r *request) (rest *rangeNode, found bool) {
	if n == nil {
		return nil, false
	}
	if n.r == r {
		return join(n.left, n.right), true
	}
	// Those with r's start may be on either side of an equal one.
	if n.r.start >= r.start {
		if n.left, found = n.left.remove(r); found {
			n.update()
			return n, true
		}
	}
	if n.r.start <= r.start {
		if n.right, found = n.right.remove(r); found {
			n.update()
		}
	}
	return n, found
}
