package bulk

import "fmt"

// BadRow describes a row of a source that a reader cannot parse or a table cannot take, with the reason. Its method
// Error gives the place and the reason.
type BadRow struct {
	Place
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"` // the row in a text file, cut if it is long
}

func (b BadRow) Error() string { return b.Place.String() + ": " + b.Reason }

// String formats the place for messages, such as "customer.tbl:17" or "customer.parquet, row 17".
func (p Place) String() string {
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.Row > 0:
		return fmt.Sprintf("%s, row %d", p.File, p.Row)
	}
	return p.File
}
