package usererror

import "google.golang.org/grpc/codes"

// Errors about rows. The argument key of these functions is the text of a row's key: {Int64(1), String("a")}.

// WrongKeyParts returns the error for a key, or an end of a key range, with too few or too many parts.
func WrongKeyParts(object string, want, got int, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Wrong number of key parts for %s. Expected %d key parts, found %d key parts. Supplied key: %s", object, want, got, key)
}

// PendingInKeySet returns the error for spanner.commit_timestamp() in a key set.
func PendingInKeySet(object, column string) *Error {
	return newError(codes.FailedPrecondition,
		"Could not parse spanner.commit_timestamp() as TIMESTAMP: it cannot be used in a key set of %s, column %s.", object, column)
}

// ColumnNotInIndex returns the error for a read of an index that asks for a column which is neither in the index nor in
// the table's key.
func ColumnNotInIndex(index, column string) *Error {
	return newError(codes.NotFound, "Index %s does not have a column named %s", index, column)
}

// PendingCommitTimestamp returns the error for a read of a column that this transaction has set to its commit
// timestamp.
func PendingCommitTimestamp(table, column string) *Error {
	return newError(codes.InvalidArgument,
		"The column %s.%s cannot be accessed because it, or its associated index, has a pending CommitTimestamp", table, column)
}

// RowExists returns the error for an insert of a row that exists.
func RowExists(table, key string) *Error {
	return violation(codes.AlreadyExists, "Table %s: Row %s already exists.", table, key)
}

// RowNotFound returns the error for an update of a row that does not exist.
func RowNotFound(table, key string) *Error {
	return violation(codes.NotFound, "Table %s: Row %s not found.", table, key)
}

// RowDeletedThenUpdated returns the error for an update of a row that the same transaction deleted before.
func RowDeletedThenUpdated(table, key string) *Error {
	return newError(codes.InvalidArgument, "Row %s in %s was deleted and then updated in the same transaction.", key, table)
}

// RowAffectedTwice returns the error for an INSERT OR UPDATE statement with two rows of the same key.
func RowAffectedTwice(table, key string) *Error {
	return newError(codes.InvalidArgument, "INSERT OR UPDATE cannot affect row %s of table %s a second time.", key, table)
}

// ParentNotFound returns the error for an insert of a row whose parent does not exist.
func ParentNotFound(parent, child, key string) *Error {
	return violation(codes.NotFound,
		"Insert failed because key was not found in parent table:  Parent Table: %s  Child Table: %s  Key: %s", parent, child, key)
}

// ChildExists returns the error for deleting a row that has child rows, if ON DELETE NO ACTION applies.
func ChildExists(parent, child, key string) *Error {
	return violation(codes.FailedPrecondition,
		"Delete failed because one or more keys exist within the child table:  Parent Table: %s  Child Table: %s  Key: %s", parent, child, key)
}

// UniqueViolation returns the error for a second row with the same key in a UNIQUE index.
func UniqueViolation(index, key string) *Error {
	return violation(codes.AlreadyExists, "UNIQUE violation on index %s, duplicate key: %s in this transaction.", index, key)
}

// CheckViolation returns the error for a row that breaks a CHECK constraint.
func CheckViolation(table, constraint, key string) *Error {
	return violation(codes.OutOfRange, "Check constraint %s.%s is violated for key %s", table, constraint, key)
}

// ForeignKeyMissing returns the error for a row that refers to a key that does not exist.
func ForeignKeyMissing(constraint, table, referenced, key string) *Error {
	return violation(codes.FailedPrecondition,
		"Foreign key %s constraint violation on table %s. Cannot find referenced key %s in table %s.", constraint, table, key, referenced)
}

// ForeignKeyReferenced returns the error for deleting or updating a key to which other rows refer.
func ForeignKeyReferenced(constraint, referenced, table, key string) *Error {
	return violation(codes.FailedPrecondition,
		"Foreign key %s constraint violation when deleting or updating referenced key %s of table %s. A row in table %s refers to it.",
		constraint, key, referenced, table)
}

// ReferencedValueWrittenAndDeleted returns the error for a commit that writes a row and also deletes it, if the written
// columns include one to which a foreign key ON DELETE CASCADE refers.
func ReferencedValueWrittenAndDeleted(table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot write a value for the referenced column `%s.%s` and delete it in the same transaction.", table, column)
}

// RowWrittenAndDeletedByAction returns the error for a commit that writes a row which a foreign key ON DELETE CASCADE
// deletes in the same commit.
func RowWrittenAndDeletedByAction(table string) *Error {
	return newError(codes.FailedPrecondition,
		"Cannot modify a row in the table `%s` because a referential action is deleting it in the same transaction.", table)
}

// NullValue returns the error for writing NULL to a NOT NULL column.
func NullValue(table, column string) *Error {
	return violation(codes.FailedPrecondition, "Cannot specify a null value for column: %s in table: %s", column, table)
}

// ValueMissing returns the error for an insert that gives no value for a NOT NULL column which has no default.
func ValueMissing(table, column string) *Error {
	return violation(codes.FailedPrecondition, "A new row in table %s does not specify a non-null value for column: %s", table, column)
}

// KeyColumnMissing returns the error for an update that does not give the values of all key columns.
func KeyColumnMissing(table, column string) *Error {
	return newError(codes.FailedPrecondition,
		"The value of the primary key column %s of table %s must be explicitly specified in an update.", column, table)
}

// DefaultKeyMissing returns the error for an update that gives no value for a key column which has a default.
func DefaultKeyMissing(column string) *Error {
	return newError(codes.FailedPrecondition,
		"Implicit use of primary key default value for column `%s` is not allowed in Update mutations. The column must have a specific value.", column)
}

// GeneratedKeyMissing returns the error for an update that gives neither the value of a generated key column nor the
// values from which it is computed.
func GeneratedKeyMissing(column string) *Error {
	return newError(codes.FailedPrecondition,
		"The value of generated primary key column `%s` must be explicitly specified or else its non-key dependent columns must be specified in Update mutations.", column)
}

// GeneratedKeyGiven returns the error for giving the value of a generated key column in an operation that is not an
// update.
func GeneratedKeyGiven(column string) *Error {
	return newError(codes.InvalidArgument, "The value of generated primary key column `%s` cannot be specified in operations except update operations.", column)
}

// GeneratedKeyChanged returns the error for an update that would change the value of a generated key column.
func GeneratedKeyChanged(column string) *Error {
	return newError(codes.OutOfRange, "The value of generated primary key column `%s` cannot be modified when its non-key dependent columns are updated.", column)
}

// KeyColumnChanged returns the error for an update that would change the key of a row.
func KeyColumnChanged(table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot update the primary key column %s of table %s.", column, table)
}

// WriteToGenerated returns the error for writing a value to a generated column.
func WriteToGenerated(table, column string) *Error {
	return newError(codes.FailedPrecondition, "Cannot write into generated column `%s.%s`.", table, column)
}

// ValueTooLong returns the error for a STRING or BYTES, or an element of an array of these, that is longer than its
// column allows.
func ValueTooLong(table, column string, limit, size int64) *Error {
	return violation(codes.FailedPrecondition,
		"New value exceeds the maximum size limit for this column: %s.%s, size: %d, limit: %d.", table, column, size, limit)
}

// PlacementNotFound returns the error for a value of a placement key that names no placement.
func PlacementNotFound(placement, table, column string) *Error {
	return violation(codes.InvalidArgument, "Placement not found: %s, in placement key column %s of table %s", placement, column, table)
}

// PlacementInUse returns the error for dropping a placement that a row names in its placement key.
func PlacementInUse(placement, table, key string) *Error {
	return newError(codes.FailedPrecondition, "Cannot drop placement %s: it is used by table %s at key: %s", placement, table, key)
}

// VectorLength returns the error for an array that has more or fewer elements than its column's vector_length.
func VectorLength(column string, elements int, limit int64) *Error {
	how := "is less than"
	if int64(elements) > limit {
		how = "exceeds"
	}
	return violation(codes.InvalidArgument, "Array column %s has %d elements and %s the `vector_length` limit: %d.", column, elements, how, limit)
}

// NullInVector returns the error for writing an array that contains NULL to a column with vector_length.
func NullInVector(column string) *Error {
	return violation(codes.InvalidArgument, "The array column %s has `vector_length`, and Null is not allowed.", column)
}

// InvalidUTF8 returns the error for a STRING that is not valid UTF-8.
func InvalidUTF8(table, column string) *Error {
	return violation(codes.InvalidArgument, "Invalid UTF-8 encoding in column %s of table %s.", column, table)
}

// KeyTooLong returns the error for a key of a row or of an index entry that has more than limit bytes.
func KeyTooLong(object string, size, limit int) *Error {
	return violation(codes.InvalidArgument,
		"Number of bytes for key of table or index %s is %d, maximum allowed value for key size is %d", object, size, limit)
}

// CommitTimestampNotAllowed returns the error for writing the commit timestamp to a column without the option
// allow_commit_timestamp.
func CommitTimestampNotAllowed(column string) *Error {
	return violation(codes.FailedPrecondition,
		"Cannot write commit timestamp because the allow_commit_timestamp column option is not set to true for column %s, "+
			"or for all corresponding shared key columns in this table's interleaved table hierarchy.", column)
}

// FutureTimestamp returns the error for writing a timestamp in the future to a column with allow_commit_timestamp.
func FutureTimestamp(table, column, found string) *Error {
	return violation(codes.FailedPrecondition,
		"Cannot write timestamps in the future, found: %s for column %s in table %s.", found, column, table)
}

// ColumnRepeated returns the error for a mutation that names a column twice.
func ColumnRepeated(column string) *Error {
	return newError(codes.InvalidArgument, "Multiple values for column %s.", column)
}

// ValueCount returns the error for a row of a mutation with more or fewer values than columns.
func ValueCount(columns, values int) *Error {
	return newError(codes.InvalidArgument, "Mutation has mismatched number of columns (%d) and values (%d).", columns, values)
}

// TooManyMutations returns the error for a commit or DML statement with too many mutations. Clients recognise the error
// by the first words of its text.
func TooManyMutations(limit int) *Error {
	return tooLarge(
		"The transaction contains too many mutations. Insert and update operations count with the multiplicity of the number of columns they affect. "+
			"For example, inserting values into one key column and four non-key columns counts as five mutations. "+
			"Delete and delete range operations count as one mutation. The total mutation count includes any changes to indexes. "+
			"Please reduce the number of writes, or use fewer indexes. (Maximum number: %d)", limit)
}

// CommitTooLarge returns the error for a commit, a DML statement or a transaction that writes too many bytes, including
// those of index entries.
func CommitTooLarge(limit int64) *Error {
	return tooLarge(
		"The transaction exceeds the maximum total bytes-size that can be handled by Spanner. "+
			"Please reduce the size or number of the writes, or use fewer indexes. (Maximum size: %d)", limit)
}

// NullFound returns the error for an existing row with NULL in a column that would become NOT NULL.
func NullFound(column, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Adding a NOT NULL constraint on a column %s is not allowed because it has a NULL value at key: %s", column, key)
}

// LongValueFound returns the error for an existing row with a value longer than the column's new limit.
func LongValueFound(column string, limit, size int64, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Reducing the length of column %s to %d is not allowed because it has a value of length %d at key: %s", column, limit, size, key)
}

// VectorLengthFound returns the error for an existing row with an array whose length differs from the column's new
// vector_length.
func VectorLengthFound(column string, limit int64, elements int, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Changing the vector_length of column %s to %d is not allowed because it has an array with %d elements at key: %s", column, limit, elements, key)
}

// NullInVectorFound returns the error for an existing row with an array that contains NULL, in a column that would get
// a vector_length.
func NullInVectorFound(column, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Changing the vector_length of column %s is not allowed because it has an array with a NULL element at key: %s", column, key)
}

// InvalidUTF8Found returns the error for an existing row with a value that is not valid UTF-8, in a column that would
// become STRING.
func InvalidUTF8Found(column, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Changing the type of column %s to STRING is not allowed because it has a value that is not valid UTF-8 at key: %s", column, key)
}

// FutureTimestampFound returns the error for an existing row with a timestamp in the future, in a column that would get
// allow_commit_timestamp.
func FutureTimestampFound(column, found, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Setting allow_commit_timestamp on column %s is not allowed because it has the future timestamp %s at key: %s", column, found, key)
}

// OrphanFound returns the error for an existing row without a parent, in a table that would become INTERLEAVE IN
// PARENT.
func OrphanFound(parent, child, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Parent-child row existence constraint validation failed for table %s at row key: %s. To migrate this table from INTERLEAVE IN to INTERLEAVE IN PARENT, all its rows must have existing parent rows in the %s table.",
		child, key, parent)
}

// DuplicateFound returns the error for two existing rows with the same key in a new UNIQUE index.
func DuplicateFound(index, key string) *Error {
	return newError(codes.FailedPrecondition, "Found uniqueness violation on index %s, duplicate key: %s.", index, key)
}

// CheckViolationFound returns the error for an existing row that breaks a new CHECK constraint.
func CheckViolationFound(table, constraint, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Adding check constraint %s.%s is not allowed because it is violated at key: %s", table, constraint, key)
}

// ReferencedKeyNotFound returns the error for an existing row that refers, by a new foreign key, to a key that does not
// exist.
func ReferencedKeyNotFound(constraint, table, referenced, key string) *Error {
	return newError(codes.FailedPrecondition,
		"Adding foreign key %s to table %s is not allowed because table %s has no row that is referenced at key: %s", constraint, table, referenced, key)
}
