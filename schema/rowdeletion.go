package schema

import (
	"strconv"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// RowDeletionPolicy is ROW DELETION POLICY (OLDER_THAN(column, INTERVAL n DAY)). A row expires when the value of Column
// lies more than n days in the past; the field Days is n. The row is deleted some time later. A row with NULL in Column
// never expires. Source:
// https://cloud.google.com/spanner/docs/ttl/working-with-ttl.
type RowDeletionPolicy struct {
	Column *Column
	Days   int64
}

// maxPolicyDays exceeds the number of days between the first and the last TIMESTAMP, so with that many days no row
// expires.
const maxPolicyDays = 9999 * 366

// Limit returns the time that lies p.Days days before now. Rows whose Column lies before that time have expired.
func (p *RowDeletionPolicy) Limit(now time.Time) time.Time {
	return now.UTC().AddDate(0, 0, -int(min(p.Days, maxPolicyDays)))
}

// SQL prints the policy's condition as DDL and INFORMATION_SCHEMA do.
func (p *RowDeletionPolicy) SQL() string {
	return "OLDER_THAN(" + quote(p.Column.Name) + ", INTERVAL " + strconv.FormatInt(p.Days, 10) + " DAY)"
}

func (d *draft) addRowDeletionPolicy(t *Table, s *ast.RowDeletionPolicy) error {
	if t.RowDeletionPolicy != nil {
		return usererror.RowDeletionPolicyExists(t.RowDeletionPolicy.Column.Name, t.FullName())
	}
	return d.setRowDeletionPolicy(t, s)
}

func (d *draft) replaceRowDeletionPolicy(t *Table, s *ast.RowDeletionPolicy) error {
	if t.RowDeletionPolicy == nil {
		return usererror.NoRowDeletionPolicy(t.FullName())
	}
	return d.setRowDeletionPolicy(t, s)
}

func (t *Table) dropRowDeletionPolicy() error {
	if t.RowDeletionPolicy == nil {
		return usererror.NoRowDeletionPolicy(t.FullName())
	}
	t.RowDeletionPolicy = nil
	return nil
}

func (d *draft) setRowDeletionPolicy(t *Table, s *ast.RowDeletionPolicy) error {
	c := t.Column(s.ColumnName.Name)
	if c == nil {
		return usererror.RowDeletionPolicyColumnNotFound(s.ColumnName.Name, t.FullName())
	}
	if !isTimestamp(c) {
		return usererror.RowDeletionPolicyColumnType(c.Name, t.FullName())
	}
	days, err := parseInt(s.NumDays)
	if err != nil {
		return usererror.RowDeletionPolicyInterval(s.NumDays.Value, t.FullName())
	}
	if err := d.checkExpiry(t, t); err != nil {
		return err
	}
	t.RowDeletionPolicy = &RowDeletionPolicy{Column: c, Days: days}
	return nil
}

// checkExpiry returns an error if a foreign key or an interleaved table could keep the server from deleting rows of t
// in the background when a row of root expires. t is root or interleaved in root.
func (d *draft) checkExpiry(root, t *Table) error {
	holds := func(fk *ForeignKey) bool { return fk.Referenced == t && fk.holdsRows() }
	if names := d.foreignKeyNames(t, holds); names != "" {
		return usererror.RowDeletionPolicyForeignKey(root.FullName(), names)
	}
	for _, child := range d.Children(t) {
		switch child.Interleave {
		case InterleaveNoAction:
			return usererror.RowDeletionPolicyChild(root.FullName(), child.FullName())
		case InterleaveCascade:
			if err := d.checkExpiry(root, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsRows reports whether the foreign key prevents the deletion of rows that are still referenced.
func (fk *ForeignKey) holdsRows() bool { return !fk.Cascade && !fk.NotEnforced }

// checkExpiringAncestors returns an error if t has ON DELETE NO ACTION and the row deletion policy of an ancestor would
// delete rows of parent, the parent of t. The parameter how is the kind of interleaving of t in parent.
func checkExpiringAncestors(t *Table, how Interleave, parent *Table) error {
	if how != InterleaveNoAction {
		return nil
	}
	for p := parent; p != nil; p = p.Parent {
		if p.RowDeletionPolicy != nil {
			return usererror.ChildOfRowDeletionPolicy(t.FullName(), p.FullName())
		}
		if p.Interleave != InterleaveCascade {
			return nil
		}
	}
	return nil
}

// expiresBy reports whether the table's row deletion policy names the column.
func (t *Table) expiresBy(c *Column) bool {
	return t.RowDeletionPolicy != nil && t.RowDeletionPolicy.Column == c
}

func isTimestamp(c *Column) bool { return c.Type.Kind == value.Timestamp }
