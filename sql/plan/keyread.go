package plan

// keyRead is the scan that a plan is, if it is nothing else: rows of one table or index, by key, with plain columns.
// Its columns are then moved to where the result has them. Nil if there is more to do.
func keyRead(root Node) *Scan {
	if s, ok := root.(*Scan); ok && isKeyRead(s) {
		return s
	}
	c, ok := root.(*Compute)
	if !ok {
		return nil
	}
	s, ok := c.Input.(*Scan)
	if !ok || !isKeyRead(s) {
		return nil
	}
	read := *s
	read.Columns = nil
	for _, e := range c.Exprs {
		slot, ok := e.(*Slot)
		if !ok {
			return nil
		}
		read.Columns = append(read.Columns, s.Columns[slot.Index])
	}
	return &read
}

func isKeyRead(s *Scan) bool {
	return s.Residual == nil && s.Table.Rows == nil && s.Merge == 0 && !s.Skips()
}
