package retrieval

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// mysql is a MySQL or MariaDB database.
type mysql struct {
	pool        *sql.DB
	connections []*sql.Conn
	backends    backends
}

func openMySQL(ctx context.Context, dsn string, connections int) (relational, error) {
	config, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.ParseTime = true
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, err
	}
	m := &mysql{pool: sql.OpenDB(connector)}
	for range connections {
		c, err := m.pool.Conn(ctx)
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
		m.connections = append(m.connections, c)
	}
	// All connections are threads of one server process, so the CPU time of this process is that of all connections. A
	// file holds the process ID. If the server runs on another machine, this program cannot read the file, and the CPU
	// time is unknown.
	var file string
	if err := m.connections[0].QueryRowContext(ctx, "SELECT @@pid_file, IF(VERSION() LIKE '%MariaDB%', 'mariadbd', 'mysqld')").Scan(&file, &m.backends.name); err != nil {
		return nil, errors.Join(err, m.close())
	}
	if text, err := os.ReadFile(file); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			m.backends.pids = []harness.PID{harness.PID(n)}
		}
	}
	return m, nil
}

func (m *mysql) rows(ctx context.Context, connection int, query string, each func(scan scanRow) error) error {
	rows, err := m.connections[connection].QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (m *mysql) exec(ctx context.Context, statement string) error {
	_, err := m.connections[0].ExecContext(ctx, statement)
	return err
}

// fill loads a file into a table with LOAD DATA LOCAL, which the server must allow (local_infile).
func (m *mysql) fill(ctx context.Context, table, file string) error {
	driver.RegisterLocalFile(file)
	defer driver.DeregisterLocalFile(file)
	load := "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + table + " FIELDS TERMINATED BY '|' LINES TERMINATED BY '|\n'"
	return inTurn(func() error { return m.exec(ctx, load) }, func() error { return m.exec(ctx, "ANALYZE TABLE "+table) })
}

func (m *mysql) server() *harness.Server { return &harness.Server{CPU: m.backends.meter()} }

func (m *mysql) close() error {
	var errs []error
	for _, c := range m.connections {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, m.pool.Close())...)
}
