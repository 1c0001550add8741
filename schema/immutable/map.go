// Package immutable is an ordered map that never changes: a change makes a new map, which shares memory with the old
// one. Successive versions of a catalog consist of such maps, so each version takes memory only for what it has
// changed.
//
// Imports of this module: nothing.
package immutable

import (
	"cmp"
	"iter"
)

// Map is an ordered map that never changes; the empty map is nil. It is an AVL tree: a change copies the path from the
// root to the changed node and shares all other nodes with the old tree.
type Map[K cmp.Ordered, V any] struct {
	left, right *Map[K, V]
	key         K
	value       V
	count       int32 // the number of keys in this node and below
	height      int8
}

// Len returns the number of keys.
func (t *Map[K, V]) Len() int {
	if t == nil {
		return 0
	}
	return int(t.count)
}

// Get returns the value of a key. ok is false if the map does not have the key.
func (t *Map[K, V]) Get(key K) (value V, ok bool) {
	for t != nil {
		switch c := cmp.Compare(key, t.key); {
		case c < 0:
			t = t.left
		case c > 0:
			t = t.right
		default:
			return t.value, true
		}
	}
	return value, false
}

// With returns a map that is equal to t, except that it maps the given key to the given value.
func (t *Map[K, V]) With(key K, value V) *Map[K, V] {
	if t == nil {
		return &Map[K, V]{key: key, value: value, count: 1, height: 1}
	}
	n := *t
	switch c := cmp.Compare(key, t.key); {
	case c < 0:
		n.left = t.left.With(key, value)
	case c > 0:
		n.right = t.right.With(key, value)
	default:
		n.value = value
		return &n
	}
	return n.balanced()
}

// Without returns a map that is equal to t but lacks the given key. If t does not have this key, the result has the
// same keys as t.
func (t *Map[K, V]) Without(key K) *Map[K, V] {
	if t == nil {
		return nil
	}
	n := *t
	switch c := cmp.Compare(key, t.key); {
	case c < 0:
		n.left = t.left.Without(key)
	case c > 0:
		n.right = t.right.Without(key)
	case t.left == nil:
		return t.right
	case t.right == nil:
		return t.left
	default:
		next := t.right
		for next.left != nil {
			next = next.left
		}
		n.key, n.value, n.right = next.key, next.value, t.right.Without(next.key)
	}
	return n.balanced()
}

// balanced restores the balance of t and returns the root of the result. t is a new node that no other map contains.
// The heights of its two subtrees may differ by up to two.
func (t *Map[K, V]) balanced() *Map[K, V] {
	switch tilt := t.left.tall() - t.right.tall(); {
	case tilt > 1:
		if t.left.left.tall() < t.left.right.tall() {
			t.left = t.left.turnedLeft()
		}
		return t.turnedRight()
	case tilt < -1:
		if t.right.right.tall() < t.right.left.tall() {
			t.right = t.right.turnedRight()
		}
		return t.turnedLeft()
	}
	return t.measured()
}

func (t *Map[K, V]) turnedRight() *Map[K, V] {
	top, below := *t.left, *t
	below.left = top.right
	top.right = below.measured()
	return top.measured()
}

func (t *Map[K, V]) turnedLeft() *Map[K, V] {
	top, below := *t.right, *t
	below.right = top.left
	top.left = below.measured()
	return top.measured()
}

// measured sets the height and the count of t, a new node, from its subtrees. It returns t.
func (t *Map[K, V]) measured() *Map[K, V] {
	t.height = int8(1 + max(t.left.tall(), t.right.tall()))
	t.count = int32(1 + t.left.Len() + t.right.Len())
	return t
}

func (t *Map[K, V]) tall() int {
	if t == nil {
		return 0
	}
	return int(t.height)
}

// All yields the keys in ascending order, with their values.
func (t *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.each(yield) }
}

func (t *Map[K, V]) each(yield func(K, V) bool) bool {
	return t == nil || t.left.each(yield) && yield(t.key, t.value) && t.right.each(yield)
}

// Backward yields the keys in descending order, with their values.
func (t *Map[K, V]) Backward() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.eachBackward(yield) }
}

func (t *Map[K, V]) eachBackward(yield func(K, V) bool) bool {
	return t == nil || t.right.eachBackward(yield) && yield(t.key, t.value) && t.left.eachBackward(yield)
}

// From yields, in ascending order, the keys that are not lower than first, with their values.
func (t *Map[K, V]) From(first K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.eachFrom(first, yield) }
}

func (t *Map[K, V]) eachFrom(first K, yield func(K, V) bool) bool {
	if t == nil {
		return true
	}
	if t.key < first {
		return t.right.eachFrom(first, yield)
	}
	return t.left.eachFrom(first, yield) && yield(t.key, t.value) && t.right.each(yield)
}

// Differences calls f for each key whose values differ between two maps, in no particular order. If a map does not
// have the key, f gets the zero value for it. Differences skips the nodes that both trees share, so its time grows
// with the number of changes between them, not with their size.
func Differences[K cmp.Ordered, V comparable](before, after *Map[K, V], f func(key K, before, after V)) {
	var zero V
	switch {
	case before == after:
	case before == nil:
		for k, v := range after.All() {
			f(k, zero, v)
		}
	case after == nil:
		for k, v := range before.All() {
			f(k, v, zero)
		}
	default:
		left, old, right := before.cut(after.key)
		Differences(left, after.left, f)
		if old != after.value {
			f(after.key, old, after.value)
		}
		Differences(right, after.right, f)
	}
}

// cut splits the tree t at key. below is a tree of the lower keys, and above is a tree of the higher keys. value is the
// value of key, or the zero value. below and above share the nodes of t that are not on the path to key. They can only
// be iterated and cut, because the heights and counts of their new nodes are wrong.
func (t *Map[K, V]) cut(key K) (below *Map[K, V], value V, above *Map[K, V]) {
	if t == nil {
		return nil, value, nil
	}
	n := *t
	switch c := cmp.Compare(key, t.key); {
	case c == 0:
		return t.left, t.value, t.right
	case c < 0:
		below, value, n.left = t.left.cut(key)
		return below, value, &n
	default:
		n.right, value, above = t.right.cut(key)
		return &n, value, above
	}
}
