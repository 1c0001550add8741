package database

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestSequenceByFunction checks that a DEFAULT which takes values of a sequence through functions needs the same
// privileges as a DEFAULT that names the sequence.
func TestSequenceByFunction(t *testing.T) {
	b := create(t,
		"CREATE SEQUENCE S BIT_REVERSED_POSITIVE", "CREATE ROLE r",
		"CREATE FUNCTION Next() RETURNS INT64 AS (GET_NEXT_SEQUENCE_VALUE(SEQUENCE S))", "CREATE FUNCTION F() RETURNS INT64 AS (Next() + 0)",
		"CREATE TABLE T (K INT64 DEFAULT (F()), V INT64) PRIMARY KEY (K)", "GRANT INSERT ON TABLE T TO ROLE r")
	allowed := func() error {
		s, err := b.db.Prepare(t.Context(), b.db.Catalog(), "INSERT INTO T (V) VALUES (1)", nil, prepare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Needs.Allow(b.db.Catalog(), "r")
		into := b.db.Catalog().Table("T")
		m := table.Mutation{Op: table.Insert, Table: into, Columns: into.Columns[1:]}
		if _, mutates := b.db.mutations(b.db.Catalog(), &m).Needs(m.Op).Allow(b.db.Catalog(), "r"); (mutates == nil) != (err == nil) {
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

// commitsAfter runs a statement in a transaction, then changes the schema, and then commits the transaction. It checks
// the status code of the commit.
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

// TestReplacedFunctionAborts replaces a function that an open transaction has used. The commit must be aborted if the
// old function has checked a row that the transaction wrote, or has computed a column that the transaction read.
// Otherwise the transaction must commit.
func TestReplacedFunctionAborts(t *testing.T) {
	b := create(t, "CREATE FUNCTION Most() RETURNS INT64 AS (10)",
		"CREATE TABLE T (K INT64, V INT64, CONSTRAINT C CHECK (V < Most())) PRIMARY KEY (K)", "CREATE TABLE Other (K INT64, V INT64) PRIMARY KEY (K)")
	b.commitsAfter("INSERT INTO T (K, V) VALUES (1, 8)", "CREATE OR REPLACE FUNCTION Most() RETURNS INT64 AS (5)", codes.Aborted)
	b.commitsAfter("INSERT INTO Other (K, V) VALUES (1, 8)", "CREATE OR REPLACE FUNCTION Most() RETURNS INT64 AS (6)", codes.OK)
	b.alter("CREATE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 1)", "CREATE TABLE V (K INT64, N INT64 AS (Next(K)), M INT64 AS (N * 2)) PRIMARY KEY (K)")
	b.commitsAfter("SELECT M FROM V", "CREATE OR REPLACE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 2)", codes.Aborted)
	b.commitsAfter("SELECT K FROM V", "CREATE OR REPLACE FUNCTION Next(x INT64) RETURNS INT64 AS (x + 3)", codes.OK)
}

// commit runs a statement in its own transaction.
func (b *bed) commit(sql string) error {
	tx := b.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	if _, err := b.in(tx, sql); err != nil {
		return err
	}
	_, err := tx.Commit(context.Background(), nil, txn.CommitOptions{})
	return err
}

// TestRefusedFunctionBesideWrites writes rows while a schema change checks existing rows against a new definition of a
// function. A written row must obey the CHECK with both definitions. So all rows obey it, whether the change succeeds
// or is refused.
func TestRefusedFunctionBesideWrites(t *testing.T) {
	o := newOperated(t)
	o.alter("CREATE FUNCTION Fits(x INT64) AS (x >= 0)", "ALTER TABLE T ADD CONSTRAINT C CHECK (Fits(V))")
	inserted, op := 0, o.op
	op.Progress = func(schemachange.Progress) {
		if inserted++; inserted == 1 {
			for v, want := range map[int64]codes.Code{-1: codes.OutOfRange, 3: codes.OutOfRange, 20: codes.OK} {
				if err := o.insert("T", [2]int64{operatedRows + 10 + v, v}); usererror.CodeOf(err) != want {
					t.Errorf("V = %d while the change is under way: %v", v, err)
				}
			}
		}
	}
	err := o.db.UpdateSchema(t.Context(), []string{"CREATE OR REPLACE FUNCTION Fits(x INT64) AS (x < 0 OR x > 10)"}, &op)
	if usererror.CodeOf(err) != codes.FailedPrecondition || inserted == 0 {
		t.Errorf("%d reports, then %v", inserted, err)
	}
	if got := o.query("SELECT COUNT(*) FROM T WHERE NOT Fits(V)"); got != "0\n" {
		t.Errorf("%s rows break the constraint", got)
	}
	if err := o.insert("T", [2]int64{-1, 3}); err != nil {
		t.Error(err)
	}
}
