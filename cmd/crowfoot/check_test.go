package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
)

// TestCheck checks what the command check reports about three directories. It must find no fault in the directory of a
// killed server, say that the directory of a running server is in use, and report a damaged directory. A server on the
// damaged directory must report the damage too. The command must never change the directory.
func TestCheck(t *testing.T) {
	data, ddl := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "schema.sql")
	if err := os.WriteFile(ddl, []byte("CREATE TABLE A (K STRING(36), V BYTES(MAX)) PRIMARY KEY (K); CREATE INDEX ByV ON A(K DESC);"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, address := startServer(t, "--data", data, "--database", crashDatabase, "--ddl", ddl)
	client := connect(t, address)
	secret := make([]byte, 10_000) // random, so that it does not compress
	for i := range secret {
		secret[i] = byte(rand.Uint32())
	}
	for i := range 20 {
		value := make([]byte, 100)
		if i == 7 {
			value = secret
		}
		if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("A", []string{"K", "V"}, []any{fmt.Sprint("key", i), value})}); err != nil {
			t.Fatal(err)
		}
	}
	checkDirectory(t, data, exitFailure, fmt.Sprint("is in use by another process, ", server.Process.Pid))
	kill := func() { server.Process.Kill(); server.Wait(); client.Close() }
	kill()
	checkDirectory(t, data, 0, "crowfoot: the data is sound")

	// The start flushes the log into a table file, in which damageTable then flips a bit.
	server, address = startServer(t, "--data", data)
	client = connect(t, address)
	kill()
	checkDirectory(t, data, 0, "crowfoot: the data is sound")
	damageTable(t, data, secret)
	checkDirectory(t, data, exitDamaged, "damaged file: 0")
	if err := os.Remove(filepath.Join(data, "LOCK")); err != nil { // because a copy of a directory may have no such file
		t.Fatal(err)
	}
	checkDirectory(t, data, exitDamaged, "go back to a copy that is sound")

	server, address = startServer(t, "--data", data)
	client = connect(t, address)
	read := func(key string) error {
		_, err := client.Single().ReadRow(t.Context(), "A", spanner.Key{key}, []string{"V"})
		return err
	}
	if err := read("key7"); err == nil || !strings.Contains(err.Error(), "DataLoss") {
		t.Errorf("the damaged row is answered %v, want DATA_LOSS", err)
	}
	if err := read("key19"); err != nil {
		t.Error(err)
	}
	kill()
	if err := os.Remove(filepath.Join(data, "CROWFOOT.synced")); err != nil {
		t.Fatal(err)
	}
	checkDirectory(t, data, exitDamaged, "CROWFOOT.synced is missing")
}

// damageTable flips a bit of the table file that contains the given bytes.
func damageTable(t *testing.T, data string, holds []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(text, holds[5000:5100]); at >= 0 {
			text[at] ^= 4
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no table file holds the bytes")
}

// checkDirectory runs the command check on a directory. The command must exit with the given status, print the given
// text, and change nothing.
func checkDirectory(t *testing.T, data string, status int, says string) {
	t.Helper()
	before := fingerprint(t, data)
	cmd := exec.Command(os.Args[0], "check", "--data", data)
	cmd.Env = append(os.Environ(), runMain+"=1")
	text, err := cmd.CombinedOutput()
	got := 0
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		got = exit.ExitCode()
	}
	if got != status || !strings.Contains(string(text), says) {
		t.Errorf("crowfoot check ends with %d, want %d, and says %q, want %q", got, status, text, says)
	}
	for _, riddle := range []string{"000000", "carrier", "log of the server"} {
		if strings.Contains(string(text), riddle) {
			t.Errorf("crowfoot check says %q, which does not help: %s", riddle, text)
		}
	}
	if after := fingerprint(t, data); after != before && !strings.Contains(says, "in use") {
		t.Errorf("the directory was changed: %s, was %s", after, before)
	}
}

// fingerprint returns a list of the files of a directory, with their sizes and modification times.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == "LOCK" {
			// The time of this file may change, because the command check locks the file.
			list = append(list, e.Name())
			continue
		}
		list = append(list, fmt.Sprint(e.Name(), " ", info.Size(), " ", info.ModTime()))
	}
	return strings.Join(list, "; ")
}
