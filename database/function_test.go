package database

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestSequenceByFunction: a DEFAULT that takes values of a sequence by way of functions takes of a role what one takes that names the sequence.
func TestSequenceByFunction(t *testing.T) {
	b := create(t,
		"CREATE SEQUENCE S BIT_REVERSED_POSITIVE", "CREATE ROLE r",
		"CREATE FUNCTION Next() RETURNS INT64 AS (GET_NEXT_SEQUENCE_VALUE(SEQUENCE S))", "CREATE FUNCTION F() RETURNS INT64 AS (Next() + 0)",
		"CREATE TABLE T (K INT64 DEFAULT (F()), V INT64) PRIMARY KEY (K)", "GRANT INSERT ON TABLE T TO ROLE r")
	allowed := func() error {
		s, err := b.db.Prepare(t.Context(), b.db.Catalog(), "INSERT INTO T (V) VALUES (1)", nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.db.Allow("r", s.Needs)
		into := b.db.Catalog().Table("T")
		m := table.Mutation{Op: table.Insert, Table: into, Columns: into.Columns[1:]}
		if _, mutates := b.db.Allow("r", b.db.Mutations(b.db.Catalog(), &m).Needs(m.Op)); (mutates == nil) != (err == nil) {
			t.Errorf("the statement: %v; the mutation: %v", err, mutates)
		}
		return err
	}
	if err := allowed(); usererror.CodeOf(err) != codes.PermissionDenied {
		t.Errorf("without UPDATE of the sequence: %v", err)
	}
	b.alter("GRANT UPDATE ON SEQUENCE S TO ROLE r")
	if err := allowed(); err != nil {
		t.Error(err)
	}
	b.commitsAfter("INSERT INTO T (V) VALUES (1)", "ALTER SEQUENCE S RESTART COUNTER WITH 7", codes.Aborted)
}

// commitsAfter runs a statement in a transaction, which ends with a code after the schema has changed.
func (b *bed) commitsAfter(statement, change string, want codes.Code) {
	b.t.Helper()
	tx := b.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	if _, err := b.in(tx, statement); err != nil {
		b.t.Fatal(err)
	}
	b.alter(change)
	if _, err := tx.Commit(context.Background(), nil, txn.CommitOptions{}); usererror.CodeOf(err) != want {
		b.t.Errorf("%s, then %s: %v", statement, change, err)
	}
}

// TestReplacedFunctionAborts: a row that obeys the CHECK of a function as it was is not committed once the function is another, nor what was read of a
// column that a function computes.
func TestReplacedFunctionAborts(t *testing.T) {
	b := create(t, "CREATE FUNCTION Most() RETURNS INT64 AS (10)",
		"CREATE TABLE T (K INT64, V INT64, CONSTRAINT C CHECK (V < Most())) PRIMARY KEY (K)", "CREATE TABLE Other (K INT64, V INT64) PRIMARY KEY (K)")
	b.commitsAfter("INSERT INTO T (K, V) VALUES (1, 8)", "CREATE OR REPLACE FUNCTION Most() RETURNS INT64 AS (5)", codes.Aborted)
	b.commitsAfter("INSERT INTO Other (K, V) VALUES (1, 8)", "CREATE OR REPLACE FUNCTION Most() RETURNS INT64 AS (6)", codes.OK)
	b.alter("CREATE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 1)", "CREATE TABLE V (K INT64, N INT64 AS (Next(K)), M INT64 AS (N * 2)) PRIMARY KEY (K)")
	b.commitsAfter("SELECT M FROM V", "CREATE OR REPLACE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 2)", codes.Aborted)
	b.commitsAfter("SELECT K FROM V", "CREATE OR REPLACE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 3)", codes.OK)
}
