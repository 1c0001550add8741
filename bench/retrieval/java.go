package retrieval

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// javaReader is a Java program that reads the rows with SPL and with JDBC drivers.
//
//go:embed Retrieval.java
var javaReader string

// The paths that use Java's libraries. SPL is the program with which the authors of the published study read the rows
// (figures.go).
const (
	splText      = "text (TBL), SPL"
	splComposite = "composite table, SPL"
	splFlight    = "Flight SQL, JDBC, SPL"
	splCanned    = "canned batches, JDBC, SPL"
	splSpanner   = "Google's Spanner JDBC, SPL"
	jdbcFlight   = "Flight SQL, JDBC"
	jdbcSpanner  = "Google's Spanner JDBC"
)

// The names of the libraries for which javaReader looks, and the classes of their JDBC drivers.
const (
	librarySPL, libraryFlight, librarySpanner = "SPL", "flight-sql-jdbc-driver", "google-cloud-spanner-jdbc"

	flightDriver  = "org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver"
	spannerDriver = "com.google.cloud.spanner.jdbc.JdbcDriver"
)

// javaHeap is the flag for Java's heap size. Two GiB are enough, because the readers keep only few rows.
const javaHeap = "-Xmx2g"

// startJava compiles and starts javaReader with the jars that the user has named.
func (b *retrieval) startJava(ctx context.Context, r *harness.Runner) (err error) {
	const flag, all = "--jars CLASSPATH", "SPL, JDBC drivers"
	if b.Jars == "" {
		b.lacks(all, flag)
		return nil
	}
	source := filepath.Join(r.Target.Root, "Retrieval.java")
	b.temporary = append(b.temporary, source)
	if err := os.WriteFile(source, []byte(javaReader), 0o600); err != nil {
		return err
	}
	r.Screen.Note("starting Java")
	// Arrow's driver accesses memory through java.nio.
	if b.java, err = startWorker(ctx, b.Java, javaHeap, "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", b.Jars, source); err != nil {
		return fmt.Errorf("--jars: %w", err)
	}
	b.workerFacts(r, b.java, "--jars")
	if b.java.can(librarySPL) {
		b.composite = filepath.Join(r.Target.Root, b.table.name+".ctx")
		b.temporary = append(b.temporary, b.composite)
		r.Screen.Note("writing SPL's composite table")
		_, err := b.whole(b.java.ask(ctx, "spl_write", b.compositeWrite(), compositeRead(b.composite)))
		return b.orWithout(ctx, r, b.java, librarySPL, err)
	}
	return nil
}

// splTextCursor returns the SPL expression that reads the text file. The expression gives a number and a type for each
// column. The columns of the result have no names.
func (b *retrieval) splTextCursor() string {
	var columns []string
	for i, t := range b.table.splTypes {
		columns = append(columns, fmt.Sprintf("#%d:%s", i+1, t))
	}
	return fmt.Sprintf(`file("%s").cursor(%s;,"|")`, b.files[0].name, strings.Join(columns, ","))
}

// compositeWrite returns the SPL expression that writes SPL's columnar file from the text file. The rows are sorted by
// the first column.
func (b *retrieval) compositeWrite() string {
	var columns []string
	for i := range b.table.splTypes {
		columns = append(columns, fmt.Sprintf("_%d", i+1)) // SPL's name for a column without a name
	}
	return fmt.Sprintf(`file("%s").create@y(#%s).append(%s).close()`, b.composite, strings.Join(columns, ","), b.splTextCursor())
}

func compositeRead(name string) string { return fmt.Sprintf(`file("%s").open().cursor()`, name) }

// fromJava returns paths that read the rows of the table in Java, with SPL and with JDBC drivers, in one stream.
func (b *retrieval) fromJava() (paths []harness.Path) {
	query := b.table.query()
	if b.java.can(librarySPL) {
		paths = append(paths, b.byWorker(b.java, splText, b.files[0].codec, "spl", b.splTextCursor()),
			b.byWorker(b.java, splComposite, "SPL's own", "spl", compositeRead(b.composite)))
	}
	remote := func(p harness.Path, method string, on *harness.Server) {
		p.Method, p.Local, p.Server = method, false, on
		paths = append(paths, p)
	}
	bySPL := func(driver, url string) string {
		return fmt.Sprintf(`connect("%s","%s").cursor@x("%s")`, driver, url, query)
	}
	if b.java.can(libraryFlight) {
		url, canned := b.flightURL(b.address), b.flightURL(b.canned.Address)
		remote(b.byWorker(b.java, jdbcFlight, flightCodec, "jdbc", url, query), "DoGet", nil)
		if b.java.can(librarySPL) {
			remote(b.byWorker(b.java, splFlight, flightCodec, "spl", bySPL(flightDriver, url)), "DoGet", nil)
			remote(b.byWorker(b.java, splCanned, flightCodec, "spl", bySPL(flightDriver, canned)), "DoGet", b.canned)
		}
	}
	if b.java.can(librarySpanner) {
		url := "jdbc:cloudspanner://" + b.address + "/" + b.flightSQL.database + ";usePlainText=true"
		remote(b.byWorker(b.java, jdbcSpanner, rowCodec, "jdbc", url, query), aggregateMethod, nil)
		if b.java.can(librarySPL) {
			remote(b.byWorker(b.java, splSpanner, rowCodec, "spl", bySPL(spannerDriver, url)), aggregateMethod, nil)
		}
	}
	return paths
}

// flightURL returns the JDBC URL of a Flight SQL server. The driver sends parameters of the URL that it does not know
// as headers.
func (b *retrieval) flightURL(address string) string {
	return "jdbc:arrow-flight-sql://" + address + "/?useEncryption=false&database=" + b.flightSQL.database + "&" + maxPartitions + "=1"
}
