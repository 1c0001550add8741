package retrieval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// relational is a database of another vendor, which gets a copy of the rows of the benchmark's table.
type relational interface {
	// rows runs a query on the connection with this index. It calls each(scan) for every row of the result. The
	// argument scan copies the columns of that row.
	rows(ctx context.Context, connection int, query string, each func(scan scanRow) error) error
	exec(ctx context.Context, statement string) error
	// fill loads a file in the format of TPC-H's generator into an empty table.
	fill(ctx context.Context, table, file string) error
	// server returns a Server whose meter reads the CPU time of the connections' processes. The Server has no meter if
	// the database runs on another machine.
	server() *harness.Server
	close() error
}

// scanRow copies the columns of a row to the variables that dest points to.
type scanRow func(dest ...any) error

// relationalPrefix is the beginning of the names of our tables in other databases. It avoids clashes with tables that
// exist there.
const relationalPrefix = "crowfoot_bench_"

// relationalTypes is a replacer for DDL. It turns Spanner's types into those of PostgreSQL and MySQL, and moves the
// primary key into the list of columns. The parenthesis that ends this list is then missing, and ensure adds it.
var relationalTypes = strings.NewReplacer("INT64", "BIGINT", "FLOAT64", "DOUBLE PRECISION", "STRING(", "VARCHAR(", ") PRIMARY KEY (", ", PRIMARY KEY (")

// otherDatabase is a database that the user has named by a flag. The fields name, driver and codec are for the report.
type otherDatabase struct {
	relational
	name, driver, codec string
}

// otherDatabases connects to the databases that the user has named and fills their tables. It opens as many
// connections to each database as the largest number of readers.
func (b *retrieval) otherDatabases(ctx context.Context, r *harness.Runner) error {
	for _, d := range []struct {
		otherDatabase
		flag, dsn string
		open      func(ctx context.Context, dsn string, connections int) (relational, error)
	}{
		{otherDatabase{name: "PostgreSQL", driver: "pgx", codec: "PostgreSQL's binary, none"}, "--postgres", b.Postgres, openPostgres},
		{otherDatabase{name: "MySQL", driver: "go-sql-driver", codec: "MySQL's text, none"}, "--mysql", b.MySQL, openMySQL},
	} {
		if d.dsn == "" {
			b.lacks(d.name, d.flag+" DSN")
			continue
		}
		var err error
		if d.relational, err = d.open(ctx, d.dsn, b.mostReaders()); err != nil {
			return fmt.Errorf("%s: %w", d.flag, err)
		}
		b.others = append(b.others, d.otherDatabase)
		r.Screen.Note("filling the table in " + d.name)
		if err := d.ensure(ctx, b.table, b.rows, b.files[0].name); err != nil {
			return fmt.Errorf("fill the table in %s: %w", d.name, err)
		}
		var version string
		if err := d.one(ctx, "SELECT VERSION()", &version); err != nil {
			return err
		}
		version, _, _ = strings.Cut(version, " on ") // PostgreSQL adds " on", the platform and the compiler
		r.Fact("%s: version %s", d.name, version)
	}
	return nil
}

// ensure does nothing if the table already has the given number of rows. Otherwise it creates the table anew and fills
// it from the file.
func (d otherDatabase) ensure(ctx context.Context, t *retrievedTable, rows int64, file string) error {
	name := relationalPrefix + t.name
	var got int64
	if err := d.one(ctx, "SELECT COUNT(*) FROM "+name, &got); err == nil && got == rows {
		return nil
	}
	ddl := strings.Replace(relationalTypes.Replace(t.ddl), "EXISTS "+t.name, "EXISTS "+name, 1) + ")"
	return inTurn(func() error { return d.exec(ctx, "DROP TABLE IF EXISTS "+name) },
		func() error { return d.exec(ctx, ddl) },
		func() error { return d.fill(ctx, name, file) })
}

// inTurn runs the steps in order until one fails, and returns its error.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// one runs a query and reads the only row of its result.
func (d otherDatabase) one(ctx context.Context, query string, dest ...any) error {
	return d.rows(ctx, 0, query, func(scan scanRow) error { return scan(dest...) })
}

// fromOthers returns paths that read all rows of the other databases with n readers.
func (b *retrieval) fromOthers(n int) (paths []harness.Path) {
	for _, d := range b.others {
		paths = append(paths, harness.Path{Name: d.name + ", " + d.driver, Clients: 1, Foreign: true, Server: d.server(), Codec: d.codec, Operation: func(ctx context.Context, _ harness.Call) (int, error) {
			if n == 1 {
				return b.whole(d.read(ctx, b.table, 0, ""))
			}
			return b.whole(b.inRanges(ctx, n, relationalPrefix+b.table.name,
				func(query string, rows, last *int64) error { return d.one(ctx, query, rows, last) },
				func(ctx context.Context, i int, after, until int64) (int64, error) {
					return d.read(ctx, b.table, i, fmt.Sprintf(" WHERE %[1]s > %[2]d AND %[1]s <= %[3]d", b.table.columns[0], after, until))
				}))
		}})
	}
	return paths
}

// read reads the rows of the table and makes an object of each. It returns the number of rows. The parameter where is a
// WHERE clause that selects rows; "" stands for all rows.
func (d otherDatabase) read(ctx context.Context, t *retrievedTable, connection int, where string) (rows int64, err error) {
	query := "SELECT " + strings.Join(t.columns, ", ") + " FROM " + relationalPrefix + t.name + where
	scanned := t.scan()
	err = d.rows(ctx, connection, query, func(scan scanRow) error {
		rows++
		return scanned(scan)
	})
	return rows, err
}

// customerScan returns a function that scans a row into an object. Only the objects of the last rows are kept.
func customerScan() func(scanRow) error {
	objects, i := make([]customer, kept), 0
	return func(scan scanRow) error {
		c := &objects[i%kept]
		i++
		return scan(&c.Key, &c.Name, &c.Address, &c.Nation, &c.Phone, &c.Balance, &c.MarketSegment, &c.Comment)
	}
}

func orderScan() func(scanRow) error {
	objects, i := make([]struct {
		order
		day time.Time // the drivers of PostgreSQL and MySQL return a date as a time.Time
	}, kept), 0
	return func(scan scanRow) error {
		o := &objects[i%kept]
		i++
		return scan(&o.Key, &o.Customer, &o.Status, &o.TotalPrice, &o.day, &o.Priority, &o.Clerk, &o.ShipPriority, &o.Comment)
	}
}

// keyRanges returns an operation that reads the table as the published study does with several readers (figures.go).
// The operation first runs COUNT(*). Then each of n readers reads one range of the keys on a connection of its own.
func (b *retrieval) keyRanges(n int) harness.Operation {
	key := b.table.columns[0]
	return func(ctx context.Context, _ harness.Call) (int, error) {
		return b.whole(b.inRanges(ctx, n, b.table.name, func(query string, rows, last *int64) error {
			return b.connections[0].Client.Single().Query(ctx, spanner.NewStatement(query)).Do(func(r *spanner.Row) error { return r.Columns(rows, last) })
		}, func(ctx context.Context, i int, after, until int64) (int64, error) {
			return b.table.objects(b.connections[i].Client.Single().Query(ctx, spanner.Statement{
				SQL:    b.table.query() + " WHERE " + key + " > @after AND " + key + " <= @until",
				Params: map[string]any{"after": after, "until": until},
			}))
		}))
	}
}

// inRanges counts the rows and then reads n ranges of keys at the same time. The ranges divide the keys up to the
// largest key, and not up to the number of rows. Thus every row is read, even if the keys have gaps or n does not
// divide the number of rows.
func (b *retrieval) inRanges(ctx context.Context, n int, table string, count func(query string, rows, last *int64) error,
	read func(ctx context.Context, i int, after, until int64) (int64, error)) (int64, error) {
	var rows, last int64
	if err := count(fmt.Sprintf("SELECT COUNT(*), MAX(%s) FROM %s", b.table.columns[0], table), &rows, &last); err != nil {
		return 0, err
	}
	if rows != b.rows {
		return 0, fmt.Errorf("COUNT(*) is %d of %d", rows, b.rows)
	}
	return shared(ctx, n, n, func(ctx context.Context, i int) (int64, error) {
		return read(ctx, i, last*int64(i)/int64(n), last*int64(i+1)/int64(n))
	})
}

// backends are the processes of a database on this machine. The field name is a prefix of the processes' names.
type backends struct {
	name string
	pids []harness.PID
}

// meter returns a meter of the total CPU time of the processes. It returns nil if they do not run on this machine.
func (b backends) meter() harness.CPUMeter {
	if len(b.pids) == 0 {
		return nil
	}
	for _, p := range b.pids {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p))
		if err != nil || !strings.HasPrefix(string(name), b.name) {
			return nil
		}
	}
	return func() (total time.Duration, err error) {
		for _, p := range b.pids {
			used, failed := p.CPU()
			total, err = total+used, errors.Join(err, failed)
		}
		return total, err
	}
}
