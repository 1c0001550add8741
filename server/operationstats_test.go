package server

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
)

// TestOperationStats: each statement or request counts as one operation on each table and index that it accesses,
// however many rows it accesses.
func TestOperationStats(t *testing.T) {
	x := newTraffic(t)
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{ // counts as one write to each table and index
		spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{1, "a"}),
		spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{2, "b"}),
		spanner.Insert("Albums", []string{"SingerId", "AlbumId", "Title"}, []any{1, 1, "x"}),
	})
	x.ok(err)
	query := func(rows int, sql string) { x.rows(rows, x.client.Single().Query(x.ctx, spanner.NewStatement(sql))) }
	query(2, "SELECT SingerId, Photo FROM Singers")
	query(1, "SELECT SingerId, Photo FROM Singers@{FORCE_INDEX=SingersByName} WHERE Name = 'a'") // reads the index, and the table for Photo
	query(1, "SELECT Born FROM Singers@{FORCE_INDEX=SingersByName} WHERE Name = 'a'")            // reads only the index
	query(4, "SELECT a.SingerId FROM Singers@{FORCE_INDEX=_BASE_TABLE} a, Singers@{FORCE_INDEX=_BASE_TABLE} b")
	x.rows(2, x.client.Single().Read(x.ctx, "Singers", spanner.KeySets(spanner.Key{1}, spanner.Key{2}), []string{"Photo"}))
	x.rows(2, x.client.Single().ReadUsingIndex(x.ctx, "Singers", "SingersByName", spanner.AllKeys(), []string{"Name"}))
	for _, sql := range []string{
		"INSERT INTO Singers (SingerId, Name) VALUES (3, 'c'), (4, 'd')",
		"UPDATE Singers@{FORCE_INDEX=_BASE_TABLE} SET Name = 'e' WHERE SingerId >= 3",
		"DELETE FROM Albums WHERE SingerId = 1 AND AlbumId = 1",
	} {
		x.ok(x.tagged("", statement(sql)))
	}
	_, err = x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Delete("Singers", spanner.AllKeys()), spanner.Replace("Albums", []string{"SingerId", "AlbumId"}, []any{1, 1}),
		spanner.Delete("Albums", spanner.AllKeys())})
	x.ok(err)
	x.minute()
	const end = "2030-01-02T03:05:00Z"
	x.shows("SELECT INTERVAL_END, TABLE_NAME, READ_QUERY_COUNT, WRITE_COUNT, DELETE_COUNT FROM SPANNER_SYS.TABLE_OPERATIONS_STATS_MINUTE ORDER BY TABLE_NAME",
		end+"|Albums|1|2|2",
		end+"|Singers|5|3|1",
		end+"|SingersByName|3|3|1")
	x.shows(`SELECT INTERVAL_END, TABLE_NAME, COLUMN_NAME, QUERY_COUNT, READ_COUNT, WRITE_COUNT, IS_QUERY_CACHE_MEMORY_CAPPED
		FROM SPANNER_SYS.COLUMN_OPERATIONS_STATS_MINUTE ORDER BY TABLE_NAME, COLUMN_NAME`,
		end+"|Albums|AlbumId|1|0|2|false",
		end+"|Albums|SingerId|1|0|2|false",
		end+"|Albums|Title|0|0|1|false",
		end+"|Singers|Name|0|0|3|false",
		end+"|Singers|Photo|2|1|0|false",
		end+"|Singers|SingerId|4|0|2|false",
		end+"|SingersByName|Born|1|0|0|false",
		end+"|SingersByName|Name|2|1|3|false",
		end+"|SingersByName|SingerId|1|0|2|false")
}

// TestTableSizes checks that, after the end of an hour, TABLE_SIZES_STATS_1HOUR has a row for every table and index.
func TestTableSizes(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	x.shows("SELECT * FROM SPANNER_SYS.TABLE_SIZES_STATS_1HOUR")
	x.forward(time.Hour)
	const end = "2030-01-02T04:00:00Z"
	x.shows(`SELECT INTERVAL_END, TABLE_NAME, USED_BYTES = USED_SSD_BYTES, USED_HDD_BYTES FROM SPANNER_SYS.TABLE_SIZES_STATS_1HOUR ORDER BY TABLE_NAME`,
		end+"|Albums|true|0", end+"|Log|true|0", end+"|Plain|true|0", end+"|Singers|true|0", end+"|SingersByName|true|0")
	x.shows(`SELECT INTERVAL_END, TABLE_NAME, LOCALITY_GROUP, USED_HDD_BYTES FROM SPANNER_SYS.TABLE_SIZES_STATS_PER_LOCALITY_GROUP_1HOUR WHERE TABLE_NAME = 'Plain'`,
		end+"|Plain|default|0")
}

// TestQueryProfiles: a row of the query profiles has the same interval and fingerprint as the row of the query
// statistics for the same query.
func TestQueryProfiles(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	x.minute()
	tagged := spanner.QueryOptions{RequestTag: "app=x"}
	x.rows(2, x.client.Single().QueryWithOptions(x.ctx, spanner.NewStatement("SELECT K FROM Plain WHERE LENGTH(V) > 1"), tagged))
	x.minute()
	x.shows(`SELECT p.INTERVAL_END, q.REQUEST_TAG, p.LATENCY_SECONDS = q.AVG_LATENCY_SECONDS,
		ARRAY(SELECT FORMAT('%s of %s', JSON_VALUE(n.executionStats.rows.total), JSON_VALUE(n.executionStats.scanned_rows.total))
			FROM UNNEST(JSON_QUERY_ARRAY(PARSE_JSON(p.QUERY_PROFILE, wide_number_mode=>'round').planNodes)) n WHERE JSON_VALUE(n.displayName) = 'Scan')
		FROM SPANNER_SYS.QUERY_PROFILES_TOP_MINUTE p JOIN SPANNER_SYS.QUERY_STATS_TOP_MINUTE q USING (INTERVAL_END, TEXT_FINGERPRINT)`,
		"2030-01-02T03:06:00Z|app=x|true|[2 of 3]")
}

// hold locks row 1 of Plain in an open transaction until the caller calls the returned function release.
func (x *traffic) hold() (release func()) {
	x.Helper()
	tx, err := spanner.NewReadWriteStmtBasedTransaction(x.ctx, x.client)
	x.ok(err)
	x.ok(statement("UPDATE Plain SET V = 'held' WHERE K = 1")(x.ctx, &tx.ReadWriteTransaction))
	return func() {
		_, err := tx.Commit(x.ctx)
		x.ok(err)
	}
}

// until waits until a query of the statistics returns a row.
func (x *traffic) until(sql string) {
	x.Helper()
	eventually(func() bool { return len(x.query(x.session, sql)) > 0 })
}

// TestActiveQueries: the SPANNER_SYS tables of active queries show the running queries and their ages.
func TestActiveQueries(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	release := x.hold()
	done := make(chan error, 1)
	go func() {
		_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.UpdateWithOptions(ctx, spanner.NewStatement("UPDATE Plain SET V = 'waits' WHERE K = 1"), spanner.QueryOptions{RequestTag: "app=waits", Priority: 1})
			return err
		}, spanner.TransactionOptions{})
		done <- err
	}()
	x.until("SELECT 1 FROM SPANNER_SYS.OLDEST_ACTIVE_QUERIES WHERE TEXT LIKE '%waits%' AND TEXT NOT LIKE '%ACTIVE%'")
	x.clock.forward(5 * time.Second)
	x.shows(`SELECT TEXT, TEXT_FINGERPRINT = FARM_FINGERPRINT('app=waits'), TEXT_TRUNCATED, SESSION_ID != '', QUERY_ID != '', CLIENT_IP_ADDRESS,
		API_CLIENT_HEADER LIKE '%gl-go/%', USER_AGENT_HEADER LIKE '%grpc-go%', SERVER_REGION, PRIORITY, TRANSACTION_TYPE, START_TIME BETWEEN '2030-01-02T03:04:00Z' AND '2030-01-02T03:05:00Z'
		FROM SPANNER_SYS.OLDEST_ACTIVE_QUERIES WHERE TEXT NOT LIKE '%ACTIVE%'`,
		"UPDATE Plain SET V = 'waits' WHERE K = 1|true|false|true|true|127.0.0.1|true|true|null|PRIORITY_LOW|READ_WRITE|true")
	// Two queries are active: the update that waits for the lock, and the query of these statistics itself.
	x.shows(`SELECT s.ACTIVE_COUNT, s.COUNT_OLDER_THAN_1S, s.COUNT_OLDER_THAN_10S, s.COUNT_OLDER_THAN_100S, s.OLDEST_START_TIME = q.START_TIME
		FROM SPANNER_SYS.ACTIVE_QUERIES_SUMMARY s, SPANNER_SYS.OLDEST_ACTIVE_QUERIES q WHERE q.TEXT NOT LIKE '%ACTIVE%'`, "2|1|0|0|true")
	release()
	x.ok(<-done)
	x.shows("SELECT ACTIVE_COUNT, COUNT_OLDER_THAN_1S FROM SPANNER_SYS.ACTIVE_QUERIES_SUMMARY", "1|0")
}

// TestActivePartitionedDML: a partitioned DML statement that waits for a lock is listed as active.
func TestActivePartitionedDML(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	release := x.hold()
	const sql = "UPDATE Plain SET V = 'all' WHERE TRUE"
	done := make(chan error, 1)
	go func() {
		_, err := x.client.PartitionedUpdate(x.ctx, spanner.NewStatement(sql))
		done <- err
	}()
	x.until("SELECT 1 FROM SPANNER_SYS.ACTIVE_PARTITIONED_DMLS")
	x.shows(`SELECT TEXT, TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT), SESSION_ID != '', NUM_PARTITIONS_TOTAL >= 1, NUM_PARTITIONS_COMPLETE, NUM_TRIVIAL_PARTITIONS_COMPLETE,
		PROGRESS, ROWS_PROCESSED, START_TIMESTAMP = LAST_UPDATE_TIMESTAMP FROM SPANNER_SYS.ACTIVE_PARTITIONED_DMLS`, sql+"|true|true|true|0|0|0|0|true")
	release()
	x.ok(<-done)
	x.shows("SELECT * FROM SPANNER_SYS.ACTIVE_PARTITIONED_DMLS")
}
