package txn

// rangeTree holds the requests for ranges, granted or waiting, ordered by start. It is a treap. Each node stores the
// greatest end in its subtree, so finding the k requests that overlap a range costs O(log n + k).
type rangeTree struct {
	root *rangeNode
	seed uint64
}

type rangeNode struct {
	r           *request
	maxEnd      string
	priority    uint64 // greater than the priorities of both children
	left, right *rangeNode
}

func (n *rangeNode) update() {
	n.maxEnd = n.r.end
	if n.left != nil {
		n.maxEnd = max(n.maxEnd, n.left.maxEnd)
	}
	if n.right != nil {
		n.maxEnd = max(n.maxEnd, n.right.maxEnd)
	}
}

// each calls f for each request that overlaps r, until f returns false.
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
	// If the range of n begins behind r, so do all ranges in the right subtree: none of them begins before n's.
	if n.r.start > r.start && (r.isPoint() || n.r.start >= r.end) {
		return true
	}
	if n.r.overlaps(r) && !f(n.r) {
		return false
	}
	return n.right.each(r, f)
}

func (t *rangeTree) insert(r *request) {
	t.seed = t.seed*6364136223846793005 + 1442695040888963407 // a pseudorandom number: Knuth's MMIX generator
	left, right := split(t.root, r.start)
	n := &rangeNode{r: r, priority: t.seed}
	n.update()
	t.root = join(join(left, n), right)
}

// split divides a tree into two: left has the requests whose ranges begin before the key in the parameter start, and
// right has all others.
func split(n *rangeNode, start string) (left, right *rangeNode) {
	if n == nil {
		return nil, nil
	}
	if n.r.start < start { // else n.r begins at or after start, and belongs to right
		n.right, right = split(n.right, start)
		left = n
	} else {
		left, n.left = split(n.left, start)
		right = n
	}
	n.update()
	return left, right
}

// join merges two trees into one. No request in left starts after one in right.
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

// extend enlarges the range of r, a request in the tree, by the adjacent range of a second request (the parameter by).
func (t *rangeTree) extend(r, by *request) {
	if by.start == r.end {
		r.end = by.end
		t.root.raise(r)
		return
	}
	t.remove(r)
	r.start = by.start
	t.insert(r)
}

// raise updates maxEnd of the nodes on the path from n to r, whose end has grown. It reports whether it found r in
// the subtree of n.
func (n *rangeNode) raise(r *request) (found bool) {
	if n == nil {
		return false
	}
	found = n.r == r ||
		n.r.start >= r.start && n.left.raise(r) || // >= and <=: if the starts are equal, r may be in either subtree
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
	// If r and n.r have the same start, r may be in either subtree of n, so remove searches both.
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
