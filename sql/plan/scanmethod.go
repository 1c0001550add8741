package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// ScanMethod says how a scan reads its rows. The hint SCAN_METHOD sets it:
// https://cloud.google.com/spanner/docs/reference/standard-sql/query-syntax#statement_hints.
type ScanMethod uint8

const (
	// AutomaticScan reads the columnar copy of the table or index if that is cheaper than reading rows.
	AutomaticScan ScanMethod = iota
	// BatchScan and RowScan read rows. They do the same, because operators always work on batches of rows.
	BatchScan
	RowScan
	// ColumnarScan reads the columnar copy if there is one.
	ColumnarScan
	// NoColumnarScan always reads rows.
	NoColumnarScan
)

// scanMethods maps the values of the hint SCAN_METHOD to scan methods.
var scanMethods = map[string]ScanMethod{
	"AUTO": AutomaticScan, "BATCH": BatchScan, "ROW": RowScan, "COLUMNAR": ColumnarScan, "NO_COLUMNAR": NoColumnarScan,
}

// String returns the name that a plan shows for the method, as scan_method in its metadata.
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

// scanMethod returns the method that the hint SCAN_METHOD of a scan sets, or, if the scan has no such hint, the method
// that the statement's hint sets. An unknown value of the hint means AutomaticScan, as does a missing hint.
func (p *planner) scanMethod(s *scanRel) ScanMethod {
	e, ok := s.hints["SCAN_METHOD"]
	if !ok {
		e = p.hints["SCAN_METHOD"]
	}
	text, _ := hintText(e)
	return scanMethods[strings.ToUpper(text)]
}

// MayReadColumnar reports whether the scan can read a columnar copy when it reads a snapshot. For that, it must read
// more than one row, in ascending key order, and without exclusive locks. It must not be a skip scan or a scan of a
// system table, and its Method must allow the copy.
func (n *Scan) MayReadColumnar() bool {
	if n.Method != AutomaticScan && n.Method != ColumnarScan || n.Table.Rows != nil {
		return false
	}
	return !n.Reverse && !n.Exclusive && n.Merge == 0 && !n.Skips() && !n.isPoint()
}

// hasCopy reports whether a scan of the table, or of its index x, could read a columnar copy. x is nil for the
// table.
func (p *planner) hasCopy(s *scanRel, x *schema.Index) bool {
	switch m := p.scanMethod(s); {
	case m != AutomaticScan && m != ColumnarScan || s.exclusive:
		return false
	case x == nil:
		return p.catalog.TableIsColumnar(s.table)
	}
	return p.catalog.IndexIsColumnar(x)
}

// isPoint reports whether the scan reads one row by its whole key.
func (n *Scan) isPoint() bool {
	if len(n.Seeks) != 1 || n.Seeks[0].Range != nil || n.Seeks[0].Tuples != nil || len(n.Seeks[0].Parts) < len(KeyColumns(n)) {
		return false
	}
	return !slices.ContainsFunc(n.Seeks[0].Parts, func(p SeekPart) bool { return p.Array != nil || !p.Null && len(p.Values) != 1 })
}

// shownMethod returns the scan_method that a printed plan shows for the scan. It is not Columnar if the scan cannot
// read a columnar copy.
func (n *Scan) shownMethod() string {
	if n.Method == ColumnarScan && !n.MayReadColumnar() {
		return AutomaticScan.String()
	}
	return n.Method.String()
}
