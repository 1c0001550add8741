package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// on runs statements on one connection. Some of the statements are commands that the driver executes itself.
func (a *app) on(statements ...string) error {
	c, err := a.sql.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	for _, s := range statements {
		if _, err := c.ExecContext(context.Background(), s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (a *app) expect(query string, want string) error {
	var got sql.NullString
	err := a.sql.QueryRow(query).Scan(&got)
	return first(err, same(query+": "+got.String, query+": "+want))
}

// batches checks that the driver sends a batch of DML as one request, which is atomic, and also a batch of DDL as one
// request. If a statement of a DDL batch fails, the statements before it must still have taken effect.
func (a *app) batches() error {
	count := "SELECT COUNT(*) FROM tags WHERE notes = 'b'"
	err := first(
		a.batch("INSERT INTO tags (name) VALUES ('b1')", "INSERT INTO tags (name) VALUES ('b2'), ('b3')", "UPDATE tags SET notes = 'b' WHERE name LIKE 'b_'"),
		a.expect(count, "3"), a.on("BEGIN", "DELETE FROM tags WHERE name = 'b1'", "ROLLBACK"), a.expect(count, "3"))
	if err != nil {
		return err
	}
	duplicate := a.batch("DELETE FROM tags WHERE name = 'b1'", "INSERT INTO tags (name) VALUES ('b2')")
	tables := "SELECT COUNT(*) FROM information_schema.tables WHERE table_name IN ('first', 'third')"
	err = first(same(duplicate != nil, true), a.expect(count, "3"),
		a.on("START BATCH DDL", "CREATE TABLE first (id INT64) PRIMARY KEY (id)", "ABORT BATCH"), a.expect(tables, "0"))
	if err != nil {
		return err
	}
	twice := a.batch("CREATE TABLE first (id INT64) PRIMARY KEY (id)", "CREATE TABLE first (id INT64) PRIMARY KEY (id)", "CREATE TABLE third (id INT64) PRIMARY KEY (id)")
	return first(same(twice != nil, true), a.expect(tables, "1"), a.on("DROP TABLE first"))
}

func (a *app) batch(statements ...string) error {
	c, err := a.sql.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(driver any) error { return driver.(*connection).batch(statements...) })
}

// settings checks the driver's settings of transactions and requests.
func (a *app) settings() error {
	return first(
		a.on("BEGIN READ ONLY", "SELECT COUNT(*) FROM tags", "COMMIT"),
		a.on("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT COUNT(*) FROM tags", "UPDATE tags SET notes = 's' WHERE name = 'made'", "COMMIT"),
		a.on("BEGIN", "SET TRANSACTION_TAG = 'tagged'", "UPDATE tags SET notes = 't' WHERE name = 'made'", "COMMIT"),
		a.on("SET STATEMENT_TAG = 'tagged'", "SELECT 1"),
		a.on("SET RPC_PRIORITY = 'LOW'", "SELECT 1", "SET RPC_PRIORITY = 'HIGH'"),
		a.on("SET RETURN_COMMIT_STATS = TRUE", "SET MAX_COMMIT_DELAY = '10ms'", "UPDATE tags SET notes = 'u' WHERE name = 'made'", "SHOW VARIABLE COMMIT_TIMESTAMP",
			"SET RETURN_COMMIT_STATS = FALSE", "SET MAX_COMMIT_DELAY = '0s'"),
		a.on("SET OPTIMIZER_VERSION = '5'", "SELECT 1", "SET OPTIMIZER_VERSION = ''"),
		a.on("CREATE TABLE IF NOT EXISTS short (id STRING(36) DEFAULT (GENERATE_UUID()) PRIMARY KEY)", "INSERT INTO short (id) VALUES (DEFAULT) THEN RETURN WITH ACTION AS act id",
			"DROP TABLE IF EXISTS short"),
		a.expect("SELECT notes FROM tags WHERE name = 'made'", "u"))
}

func (a *app) staleness() error {
	var before time.Time
	err := first(a.sql.QueryRow("SELECT CURRENT_TIMESTAMP").Scan(&before), a.on("INSERT INTO tags (name) VALUES ('fresh')"))
	if err != nil {
		return err
	}
	c, err := a.sql.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	for bound, want := range map[string]int64{"STRONG": 1, "READ_TIMESTAMP " + before.UTC().Format(time.RFC3339Nano): 0, "MAX_STALENESS 10s": 1, "EXACT_STALENESS 1ms": 1} {
		if bound == "EXACT_STALENESS 1ms" {
			time.Sleep(2 * time.Millisecond)
		}
		if _, err := c.ExecContext(context.Background(), "SET READ_ONLY_STALENESS='"+bound+"'"); err != nil {
			return err
		}
		var shown string
		var count int64
		err := first(c.QueryRowContext(context.Background(), "SHOW VARIABLE READ_ONLY_STALENESS").Scan(&shown),
			c.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM tags WHERE name = 'fresh'").Scan(&count), same(count, want))
		if err != nil {
			return fmt.Errorf("%s: %w", bound, err)
		}
	}
	_, err = c.ExecContext(context.Background(), "SET READ_ONLY_STALENESS='STRONG'")
	return err
}

func (a *app) partitionedDML() error {
	return first(a.on("SET AUTOCOMMIT_DML_MODE='PARTITIONED_NON_ATOMIC'", "UPDATE tags SET notes = 'p' WHERE TRUE", "SET AUTOCOMMIT_DML_MODE='TRANSACTIONAL'"),
		a.expect("SELECT COUNT(*) FROM tags WHERE notes <> 'p' OR notes IS NULL", "0"))
}

// mutations checks mutations outside of a transaction, and mutations in a transaction with DML.
func (a *app) mutations() error {
	insert := func(name string) *spannerpb.Mutation {
		return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "tags", Columns: []string{"name"},
			Values: []*structpb.ListValue{{Values: []*structpb.Value{structpb.NewStringValue(name)}}}}}}
	}
	c, err := a.sql.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	write := func(name string) error {
		return c.Raw(func(driver any) error { return driver.(*connection).write(insert(name)) })
	}
	if err := write("m1"); err != nil {
		return err
	}
	tx, err := c.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	_, err = tx.Exec("UPDATE tags SET notes = 'm' WHERE name = 'm1'")
	return first(err, write("m2"), tx.Commit(), a.expect("SELECT STRING_AGG(CONCAT(name, IFNULL(notes, '-')) ORDER BY name) FROM tags WHERE name LIKE 'm_'", "m1m,m2-"))
}

// retries checks that the driver retries transactions that the server aborts, so that every increment counts once.
func (a *app) retries() error {
	if err := a.on("INSERT INTO tags (name, notes) VALUES ('count', '0')"); err != nil {
		return err
	}
	const workers, each = 8, 5
	failures := make(chan error, workers*each)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range each {
				failures <- a.increment()
			}
		})
	}
	group.Wait()
	close(failures)
	counted := 0
	for err := range failures {
		if err == nil {
			counted++
		}
	}
	// When the driver retries a transaction and the reads return other values than before, the driver gives up the
	// transaction with an error. So the row must hold the number of increments that succeeded, not the number of all
	// increments.
	return first(same(counted > 0, true), a.expect("SELECT notes FROM tags WHERE name = 'count'", fmt.Sprint(counted)))
}

func (a *app) increment() error {
	tx, err := a.sql.Begin()
	if err != nil {
		return err
	}
	var count int
	if err := tx.QueryRow("SELECT CAST(notes AS INT64) FROM tags WHERE name = 'count'").Scan(&count); err != nil {
		return first(err, tx.Rollback())
	}
	if _, err := tx.Exec("UPDATE tags SET notes = ? WHERE name = 'count'", fmt.Sprint(count+1)); err != nil {
		tx.Rollback()
		return err
	}
	return tx.Commit()
}
