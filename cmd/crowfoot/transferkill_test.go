package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
)

const (
	// transferKills is how often TestKillFolder kills an export, and then an import. The environment variable
	// restartKillsName sets another number.
	transferKills = 4
	transferSeed  = 7
)

// TestKillFolder checks that an export, and then the import of its folder, can be continued with the same commands
// after they were killed with SIGKILL at random moments. The test kills the server, too, sometimes. In the end each row
// must be in the database once; the mode insert would reject a row that was written twice. The test does this with CSV
// and with Cloud Spanner's layout.
func TestKillFolder(t *testing.T) {
	for _, format := range []string{"csv", "spanner"} {
		t.Run(format, func(t *testing.T) { killFolder(t, format) })
	}
}

func killFolder(t *testing.T, format string) {
	rnd := rand.New(rand.NewPCG(uint64(environmentInt(t, watchSeedName, transferSeed)), 11))
	kills := environmentInt(t, restartKillsName, transferKills)
	const other = "projects/p/instances/i/databases/e"
	dir := t.TempDir()
	ddl := writeFile(t, "schema.sql", "CREATE TABLE P (K STRING(36) NOT NULL, V STRING(MAX)) PRIMARY KEY (K);\n"+
		"CREATE TABLE C (K STRING(36) NOT NULL, N INT64, V BYTES(MAX)) PRIMARY KEY (K, N DESC), INTERLEAVE IN PARENT P")
	args := []string{"--data", filepath.Join(dir, "data"), "--database", crashDatabase, "--database", other}
	server, address := startServer(t, append(args, "--ddl", ddl)...)
	args = append(args, "--grpc", address)
	client := connect(t, address)
	defer client.Close()
	fillFolder(t, client, rnd)

	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), runMain+"=1"), os.Stderr
		return cmd
	}
	killed := func(longest time.Duration, args ...string) (ended bool) {
		cmd := run(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(longest))), func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		t.Logf("crowfoot %s: %v", args[0], cmd.ProcessState)
		return err == nil
	}
	missing := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err != nil
	}
	finish := func(args ...string) {
		if err := run(args...).Run(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	export := []string{"export", "--to", "out", "--format", format, "--endpoint", address, "--database", crashDatabase}
	ended := false
	for i := 0; i < kills && !ended; i++ {
		ended = killed(200*time.Millisecond, export...) || !missing("out/manifest.json") && missing("out/export.state")
	}
	if !ended {
		finish(export...)
	}
	copied, err := spanner.NewClientWithConfig(t.Context(), other, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	load := []string{"import", "out", "--create", "--mode", "insert", "--parallel", "1", "--endpoint", address, "--database", other}
	began := false
	ended = false
	for range kills {
		// If an import has begun and its state file is gone, it has ended: the kill came when the import had done
		// everything, but its process had not yet ended.
		ended = killed(300*time.Millisecond, load...) || began && !hasState(t, "P")
		if began = began || hasState(t, "P"); ended {
			break
		}
	}
	if !ended {
		cmd := run(load...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond)))) // so that the kill comes at a random moment
		server.Process.Kill()
		server.Wait()
		startServer(t, args...)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("an import whose server was killed: %v", err)
		}
	}
	for _, table := range []string{"P", "C"} {
		if want, got := sumOf(t, client, table), sumOf(t, copied, table); want != got {
			t.Errorf("%s has %s, want %s", table, got, want)
		}
	}
}

// fillFolder writes several MB of rows to the tables that TestKillFolder exports.
func fillFolder(t *testing.T, client *spanner.Client, rnd *rand.Rand) {
	t.Helper()
	for range 60 {
		var rows []*spanner.Mutation
		for range 200 {
			key := fmt.Sprintf("%032x", rnd.Uint64())
			rows = append(rows, spanner.Insert("P", []string{"K", "V"}, []any{key, strings.Repeat("é", rnd.IntN(300))}))
			for n := range 3 {
				rows = append(rows, spanner.Insert("C", []string{"K", "N", "V"}, []any{key, n, []byte(strings.Repeat("\x00", rnd.IntN(600)))}))
			}
		}
		if _, err := client.Apply(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
}

// sumOf returns the number of rows of a table and a checksum of them, as one text.
func sumOf(t *testing.T, client *spanner.Client, table string) string {
	t.Helper()
	var n, sum int64
	sql := "SELECT COUNT(*), IFNULL(SUM(MOD(FARM_FINGERPRINT(CONCAT(K, '/', TO_HEX(SHA256(CAST(V AS BYTES))))), 1000000007)), 0) FROM " + table
	if err := client.Single().Query(t.Context(), spanner.NewStatement(sql)).Do(func(r *spanner.Row) error { return r.Columns(&n, &sum) }); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d rows with the sum %d", n, sum)
}
