package studies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// The table in studyOfReads has a key and ten fields, in rows of 1 kB. The study does not give its DDL, so we use the
// table of YCSB, with a string as key. We have added the index, because the study says that READ can use one, although
// it shows no figures for that.
const (
	userTable  = "usertable"
	userIndex  = "CrowfootBenchUsertableByField0"
	indexedBy  = "field0"
	storedIn   = "field1" // the column that the index stores
	userFields = 10
)

var userColumns = func() []string {
	list := []string{"id"}
	for i := range userFields {
		list = append(list, fmt.Sprint("field", i))
	}
	return list
}()

func userDDL() []string {
	return []string{
		"CREATE TABLE " + userTable + " (" + strings.Join(userColumns, " STRING(MAX), ") + " STRING(MAX)) PRIMARY KEY (id)",
		"CREATE INDEX " + userIndex + " ON " + userTable + " (" + indexedBy + ") STORING (" + storedIn + ")",
	}
}

// userKey returns the key of row i. Keys sort by row number.
func userKey(i int64) string { return fmt.Sprintf("user%012d", i) }

// userField returns the value of a field of row i.
func userField(i int64, column string) string { return harness.Letters(i, column, PointsFieldLength) }

func userRow(i int64) []*spanner.Mutation {
	values := []any{userKey(i)}
	for _, c := range userColumns[1:] {
		values = append(values, userField(i, c))
	}
	return []*spanner.Mutation{spanner.InsertOrUpdate(userTable, userColumns, values)}
}

// makeUserTable creates the table and its index, unless an earlier run has created them. If a table of that name lacks
// our index, another program such as YCSB has created it. The run then fails and does not change the table.
func makeUserTable(ctx context.Context, r *harness.Runner) error {
	there, err := r.Target.Has(ctx, "TABLES", "TABLE_NAME", userTable)
	if err != nil {
		return err
	}
	if !there {
		return r.Target.CreateTables(ctx, userDDL()...)
	}
	ours, err := r.Target.Has(ctx, "INDEXES", "INDEX_NAME", userIndex)
	if err == nil && !ours {
		err = errors.New("the database has a table " + userTable + " that this benchmark has not made: name another --database")
	}
	return err
}
