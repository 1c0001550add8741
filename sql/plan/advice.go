package plan

import "strings"

// adviceKey is the metadata key of a node's advice. The advice warns where Cloud Spanner would be slower, so that a query that is fast here
// is no surprise there. Viewers also show metadata whose keys they do not know.
const adviceKey = "cloud_spanner"

// advice lists the cases in which Cloud Spanner was measured to be slower than this scan, and what a statement needs to be fast there. It
// is "" if none is known. The figures behind it are in bench/README.md.
func (n *Scan) advice() string {
	var list []string
	if n.Chosen {
		list = append(list, "may scan the whole table without the hint FORCE_INDEX="+n.Index.FullName())
	}
	if i := n.skipped(); i >= 0 {
		list = append(list, "has no skip scan: without a list of values for "+KeyColumns(n)[i].Name+" it reads all keys")
	}
	if n.scattered() {
		list = append(list, "takes more CPU for a list of keys in SQL than for a Read")
	}
	return strings.Join(list, "; ")
}

// scattered reports whether the scan reads rows by a list of whole keys. It is false for a scan of DML, which no Read call can replace.
func (n *Scan) scattered() bool {
	if n.Index != nil || n.Exclusive || len(n.Seeks) == 0 {
		return false
	}
	lists := len(n.Seeks) > 1
	for _, s := range n.Seeks {
		if s.Range != nil || max(len(s.Parts), s.tupleLen()) < len(n.Table.Key) {
			return false
		}
		lists = lists || s.Tuples != nil
		for _, p := range s.Parts {
			lists = lists || p.Array != nil || len(p.Values) > 1
		}
	}
	return lists
}

func (s *Seek) tupleLen() int {
	if s.Tuples == nil {
		return 0
	}
	return len(s.Tuples.Fields)
}
