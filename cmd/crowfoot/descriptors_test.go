//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"cloud.google.com/go/spanner"
	"golang.org/x/net/http2"
)

// TestIdleConnections checks that a server closes the connections beyond its limit if clients open more connections
// than the process may have open files. The store must still be able to create files. To make it create some, the test
// writes more rows than fit into the store's memory.
func TestIdleConnections(t *testing.T) {
	const files, rows, batch = 200, 40, 1 << 20
	dir := t.TempDir()
	ddl := writeFile(t, "schema.sql", "CREATE TABLE T (K INT64, V BYTES(MAX)) PRIMARY KEY (K)")
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files), os.Args[0], "start",
		"--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", dir+"/data", "--database", crashDatabase, "--ddl", ddl)
	grpc, http := ready(t, cmd)
	client := connect(t, grpc)
	defer client.Close()
	write := func(row int) {
		t.Helper()
		v := make([]byte, batch)
		for i := range v {
			v[i] = byte(row * i) // so that each row has a different value
		}
		if _, err := client.Apply(context.Background(), []*spanner.Mutation{spanner.InsertOrUpdate("T", []string{"K", "V"}, []any{int64(row), v})}); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	for _, address := range []string{grpc, http} {
		for range files {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if address == grpc {
				_, _ = io.WriteString(conn, http2.ClientPreface) // fails if the server has closed the connection
				_ = http2.NewFramer(conn, conn).WriteSettings()
			}
		}
	}
	for row := range rows {
		write(row)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
