package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// ScanMethod tells how a scan reads its rows. The hint SCAN_METHOD sets it:
// https://cloud.google.com/spanner/docs/reference/standard-sql/query-syntax#statement_hints.
type ScanMethod uint8

const (
	// AutomaticScan reads the columnar copy of the table or index if that is cheaper than its rows.
	AutomaticScan ScanMethod = iota
	// BatchScan and RowScan read the rows. Operators always work on batches of rows, so the two are the same.
	BatchScan
	RowScan
	// ColumnarScan reads the columnar copy whenever there is one.
	ColumnarScan
	// NoColumnarScan reads the rows.
	NoColumnarScan
)

// scanMethods maps the words of the hint SCAN_METHOD to scan methods.
var scanMethods = map[string]ScanMethod{
	"AUTO": AutomaticScan, "BATCH": BatchScan, "ROW": RowScan, "COLUMNAR": ColumnarScan, "NO_COLUMNAR": NoColumnarScan,
}

// String returns the word for the method in plans: scan_method of the metadata.
func (m ScanMethod) String() string {
	switch m {
	case BatchScan:
		return "Batch"
	case RowScan:
		return "Row"
	case ColumnarScan:
		return "Columnar"
	}
	return "Automatic"
}

// scanMethod reads the hint SCAN_METHOD of a scan, or else of the statement. It ignores a value that is not a word.
func (p *planner) scanMethod(s *scanRel) ScanMethod {
	e, ok := s.hints["SCAN_METHOD"]
	if !ok {
		e = p.hints["SCAN_METHOD"]
	}
	text, _ := hintText(e)
	return scanMethods[strings.ToUpper(text)]
}

// MayReadColumnar reports whether a scan of a snapshot may read a columnar copy. The scan must read more than one row, in key order.
func (n *Scan) MayReadColumnar() bool {
	if n.Method != AutomaticScan && n.Method != ColumnarScan || n.Table.Rows != nil {
		return false
	}
	return !n.Reverse && !n.Exclusive && n.Merge == 0 && !n.Skips() && !n.isPoint()
}

// hasCopy reports whether a scan of the table, or of its index x, may find a columnar copy to read.
func (p *planner) hasCopy(s *scanRel, x *schema.Index) bool {
	switch m := p.scanMethod(s); {
	case m != AutomaticScan && m != ColumnarScan || s.exclusive:
		return false
	case x == nil:
		return p.catalog.TableIsColumnar(s.table)
	}
	return p.catalog.IndexIsColumnar(x)
}

// isPoint says whether the scan reads one row by its whole key.
func (n *Scan) isPoint() bool {
	if len(n.Seeks) != 1 || n.Seeks[0].Range != nil || n.Seeks[0].Tuples != nil || len(n.Seeks[0].Parts) < len(KeyColumns(n)) {
		return false
	}
	return !slices.ContainsFunc(n.Seeks[0].Parts, func(p SeekPart) bool { return p.Array != nil || !p.Null && len(p.Values) != 1 })
}

// shownMethod returns scan_method of the scan's metadata.
func (n *Scan) shownMethod() string {
	if n.Method == ColumnarScan && !n.MayReadColumnar() {
		return AutomaticScan.String()
	}
	return n.Method.String()
}
