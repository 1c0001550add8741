package database

import (
	"testing"
)

// TestDefaultTimeZone checks that SQL and expressions of the schema use the database's default time zone, also after a
// restart.
func TestDefaultTimeZone(t *testing.T) {
	b := create(t, "ALTER DATABASE test SET OPTIONS (default_time_zone = 'Asia/Kolkata')", `CREATE TABLE T (
		K INT64, V INT64,
		Made TIMESTAMP NOT NULL DEFAULT (TIMESTAMP '2024-01-01 00:00:00'),
		Parsed TIMESTAMP NOT NULL DEFAULT (PARSE_TIMESTAMP('%F', '2024-01-01')),
		Day DATE AS (DATE(Made)) STORED,
		Text STRING(MAX) AS (FORMAT_TIMESTAMP('%F %R %Z', Made)),
		CONSTRAINT Hour CHECK (EXTRACT(HOUR FROM Made) < 12),
	) PRIMARY KEY (K)`)
	if err := b.insert("T", [2]int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	check := func(sql, want string) {
		t.Helper()
		if got := b.query(sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	const row = `SELECT K, UNIX_SECONDS(Made), UNIX_SECONDS(Parsed), UNIX_DATE(Day), CAST(Text = '2024-01-01 00:00 UTC+5:30' AS INT64),
		CAST(Made = TIMESTAMP '2024-01-01 00:00:00' AS INT64), EXTRACT(HOUR FROM Made) FROM T ORDER BY K`
	// The first two numbers are 2024-01-01 00:00 in India, in Unix seconds. 19723 is the number of days from 1970-01-01
	// to 2024-01-01. Then follow two comparisons that are true, and the hour 0.
	const times = " 1704047400 1704047400 19723 1 1 0\n"
	check(row, "1"+times)
	b = b.reopen()
	if err := b.insert("T", [2]int64{2, 2}); err != nil {
		t.Fatal(err)
	}
	check(row, "1"+times+"2"+times)
}
