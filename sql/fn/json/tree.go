package json

import (
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// jsonNode is a JSON value in a form that can be changed.
type jsonNode struct {
	kind    byte   // '{', '[', or 0 for a scalar
	scalar  string // JSON text of the scalar
	members []jsonNamed
	elems   []*jsonNode
}

type jsonNamed struct {
	name string
	node *jsonNode
}

// newJSONNode builds the tree of a valid JSON text.
func newJSONNode(text string) *jsonNode {
	s := jsonScanner{text: text}
	return s.node()
}

func (s *jsonScanner) node() *jsonNode {
	start := s.pos
	switch c := s.peek(); c {
	case '{', '[':
		n := &jsonNode{kind: c}
		s.each(func(name string, _ int64, array bool) bool {
			child := s.node()
			if array {
				n.elems = append(n.elems, child)
			} else {
				n.members = append(n.members, jsonNamed{name, child})
			}
			return true
		})
		return n
	}
	s.skip()
	return &jsonNode{scalar: s.text[start:s.pos]}
}

func (n *jsonNode) append(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(value.AppendJSONString(dst, m.name), ':')
			dst = m.node.append(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, e := range n.elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.scalar...)
}

func (n *jsonNode) value() (value.Value, error) { return ofJSONText(n.append(nil)) }

func (n *jsonNode) isNull() bool { return n.scalar == "null" }

func nullNode() *jsonNode { return &jsonNode{scalar: "null"} }

// child returns the member or element that a step names; nil if there is none.
func (n *jsonNode) child(step jsonStep) *jsonNode {
	switch {
	case step.isIndex && n.kind == '[' && step.index < int64(len(n.elems)):
		return n.elems[step.index]
	case !step.isIndex && n.kind == '{':
		for _, m := range n.members {
			if m.name == step.name {
				return m.node
			}
		}
	}
	return nil
}

func (n *jsonNode) at(path []jsonStep) *jsonNode {
	for _, step := range path {
		if n = n.child(step); n == nil {
			return nil
		}
	}
	return n
}

// maxJSONArray is the maximum number of elements to which JSON_SET and JSON_ARRAY_INSERT extend an array to reach an
// index.
const maxJSONArray = 1_000_000

// open returns the member or element of n that a step names, and creates it if it is missing. If n is null, it first
// becomes an object or an array, as the step needs. If n is an array that is too short, it is extended with nulls. The
// result is nil if n is any other kind of value.
func (n *jsonNode) open(step jsonStep) (*jsonNode, error) {
	if child := n.child(step); child != nil {
		return child, nil
	}
	if n.isNull() {
		n.scalar, n.kind = "", '{'
		if step.isIndex {
			n.kind = '['
		}
	}
	child := nullNode()
	switch {
	case step.isIndex && n.kind == '[':
		if err := n.pad(step.index); err != nil {
			return nil, err
		}
		n.elems = append(n.elems, child)
	case !step.isIndex && n.kind == '{':
		n.members = append(n.members, jsonNamed{step.name, child})
	default:
		return nil, nil
	}
	return child, nil
}

// pad extends an array with nulls to the given number of elements.
func (n *jsonNode) pad(length int64) error {
	if length > maxJSONArray {
		return usererror.BadArgument("Exceeded maximum array size of 1000000")
	}
	for int64(len(n.elems)) < length {
		n.elems = append(n.elems, nullNode())
	}
	return nil
}

// mismatch reports whether creating a value at path would replace an existing value that is not null.
func (n *jsonNode) mismatch(path []jsonStep) bool {
	for _, step := range path {
		child := n.child(step)
		if child == nil {
			return !(n.isNull() || step.isIndex && n.kind == '[' || !step.isIndex && n.kind == '{')
		}
		n = child
	}
	return false
}

// set replaces the value at a path. If there is no value at the path and create is true, the value is created, with the
// objects and arrays that are missing on the path.
func (n *jsonNode) set(path []jsonStep, to *jsonNode, create bool) error {
	target := n.at(path)
	if target == nil {
		if !create || n.mismatch(path) {
			return nil
		}
		target = n
		for _, step := range path {
			var err error
			if target, err = target.open(step); err != nil {
				return err
			}
		}
	}
	*target = *to
	return nil
}

// remove removes the value at a path of at least one step.
func (n *jsonNode) remove(path []jsonStep) {
	last := path[len(path)-1]
	parent := n.at(path[:len(path)-1])
	if parent == nil || parent.child(last) == nil {
		return
	}
	if last.isIndex {
		parent.elems = append(parent.elems[:last.index], parent.elems[last.index+1:]...)
		return
	}
	for i, m := range parent.members {
		if m.name == last.name {
			parent.members = append(parent.members[:i], parent.members[i+1:]...)
			return
		}
	}
}

// stripNulls removes nulls from objects, and from arrays if the parameter inArrays is true. If the parameter empty is
// true, it also removes objects that are then empty, and, if inArrays is true too, arrays that are then empty. The
// result drop tells the caller to remove n itself.
func (n *jsonNode) stripNulls(inArrays, empty bool) (drop bool) {
	if n.kind == '{' {
		kept := n.members[:0]
		for _, m := range n.members {
			if !m.node.stripNulls(inArrays, empty) {
				kept = append(kept, m)
			}
		}
		n.members = kept
		return empty && len(kept) == 0
	}
	if n.kind == '[' {
		kept := n.elems[:0]
		for _, e := range n.elems {
			if !e.stripNulls(inArrays, empty) || !inArrays {
				kept = append(kept, e)
			}
		}
		n.elems = kept
		return empty && inArrays && len(kept) == 0
	}
	return n.isNull()
}
