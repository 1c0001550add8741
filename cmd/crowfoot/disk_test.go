package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

const noisyTable = "CREATE TABLE T (K INT64 NOT NULL, V BYTES(MAX)) PRIMARY KEY (K)"

const noiseBytes = 300_000

// noise returns a value that does not compress.
func noise(key int) []byte {
	value := make([]byte, noiseBytes)
	_, _ = rand.NewChaCha8([32]byte{byte(key), byte(key >> 8)}).Read(value)
	return value
}

// TestStorageFails checks that a server that cannot write its log ends at once with the status exitStorage, and prints
// the name of the file.
func TestStorageFails(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(os.Args[0], "start", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data,
		"--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", noisyTable))
	var message bytes.Buffer
	cmd.Stderr = &message
	api, _ := ready(t, cmd)
	client := connect(t, api)
	defer client.Close()
	for os.RemoveAll(data) != nil { // repeated, because the server still creates files
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); cancel() }()
	for key := 0; ctx.Err() == nil; key++ {
		_, _ = client.Apply(ctx, []*spanner.Mutation{spanner.InsertOrUpdate("T", []string{"K", "V"}, []any{key, noise(key)})})
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != exitStorage {
		t.Errorf("the server ended with %v", err)
	}
	if text := message.String(); !containsAll(text, "crowfoot: the storage has failed", data, ".log: no such file or directory") {
		t.Errorf("it says %q", text)
	}
}

// smallDisk is a file system of 64 MiB, which is mounted in a mount namespace of its own.
type smallDisk struct {
	*testing.T
	holder string // process ID of the process that keeps the namespace in existence
	dir    string // where the file system is mounted; processes in the namespace use this path
	inside string // the path by which this process, outside the namespace, reaches the file system
	ddl    string
}

// newSmallDisk mounts the file system. If that is not possible on this system, it skips the test.
func newSmallDisk(t *testing.T) *smallDisk {
	dir := t.TempDir()
	holder := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=64m crowfoot "$0" && echo mounted && exec cat`, dir)
	in, _ := holder.StdinPipe()
	out, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		t.Skip("no small file system can be mounted here: ", err)
	}
	t.Cleanup(func() { in.Close(); holder.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "mounted\n" {
		t.Skip("no small file system can be mounted here")
	}
	pid := strconv.Itoa(holder.Process.Pid)
	d := &smallDisk{T: t, holder: pid, dir: dir, inside: filepath.Join("/proc", pid, "root", dir), ddl: writeFile(t, "schema.sql", noisyTable)}
	if err := os.WriteFile(filepath.Join(d.inside, "other"), make([]byte, 20<<20), 0o600); err != nil {
		t.Skip("the small file system cannot be reached from here: ", err)
	}
	return d
}

// diskClient is a client of the raw API with a session. Unlike the official client, it does not retry a Commit that was
// refused.
type diskClient struct {
	*testing.T
	raw     spannerpb.SpannerClient
	session string
	data    string
}

// startServer starts a server whose data directory is on the small disk.
func (d *smallDisk) startServer() (*exec.Cmd, *diskClient) {
	d.Helper()
	data := filepath.Join(d.dir, "data")
	cmd := exec.Command("nsenter", "--user", "--mount", "--preserve-credentials", "--target", d.holder, "--", os.Args[0], "start",
		"--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data, "--database", crashDatabase, "--ddl", d.ddl)
	api, _ := ready(d.T, cmd)
	conn, err := grpc.NewClient(api, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { conn.Close() })
	c := &diskClient{T: d.T, raw: spannerpb.NewSpannerClient(conn), data: data}
	session, err := c.raw.CreateSession(context.Background(), &spannerpb.CreateSessionRequest{Database: crashDatabase})
	if err != nil {
		d.Fatal(err)
	}
	c.session = session.Name
	return cmd, c
}

// fill writes to another file on the disk until the disk is full.
func (d *smallDisk) fill() {
	d.Helper()
	f, err := os.OpenFile(filepath.Join(d.inside, "other"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		d.Fatal(err)
	}
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 1<<20)); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			d.Fatal(err)
		}
	}
}

// write commits a row whose value does not compress. It reports whether the server accepted the commit. If the server
// refused it, the reason must be that the disk is full.
func (c *diskClient) write(key int) bool {
	c.Helper()
	row, err := structpb.NewList([]any{strconv.Itoa(key), base64.StdEncoding.EncodeToString(noise(key))})
	if err != nil {
		c.Fatal(err)
	}
	_, err = c.raw.Commit(context.Background(), &spannerpb.CommitRequest{
		Session: c.session,
		Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: &spannerpb.TransactionOptions{
			Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}},
		}},
		Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{
			InsertOrUpdate: &spannerpb.Mutation_Write{Table: "T", Columns: []string{"K", "V"}, Values: []*structpb.ListValue{row}},
		}}},
	})
	if err == nil {
		return true
	}
	if spanner.ErrCode(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "data directory "+c.data+" is full") {
		c.Fatal(err)
	}
	return false
}

// has checks that the table has this number of rows, whose values are complete.
func (c *diskClient) has(rows int) {
	c.Helper()
	reply, err := c.raw.ExecuteSql(context.Background(), &spannerpb.ExecuteSqlRequest{
		Session: c.session, Sql: "SELECT COUNT(*) FROM T WHERE BYTE_LENGTH(V) = " + strconv.Itoa(noiseBytes),
	})
	if err != nil {
		c.Fatal(err)
	}
	if got := reply.Rows[0].Values[0].GetStringValue(); got != strconv.Itoa(rows) {
		c.Fatalf("%s rows are there, %d were acknowledged", got, rows)
	}
}

// TestFullDisk checks that a server whose disk is full refuses commits but serves reads, stops on SIGTERM, and starts
// again. When there is free space again, it must accept commits without a restart. The server's own data and another
// file fill the disk.
func TestFullDisk(t *testing.T) {
	d := newSmallDisk(t)
	server, client := d.startServer()
	rows := 0
	for client.write(rows) {
		rows++
	}
	d.fill()
	client.has(rows)
	if client.write(rows) {
		t.Error("a full disk takes a commit")
	}
	// The process that gets the signal is the server, because nsenter executes the server in its own process.
	if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
		t.Error(err)
	}
	d.fill()
	_, client = d.startServer()
	client.has(rows)
	if client.write(rows) {
		t.Error("a full disk takes a commit after a start")
	}
	if err := os.Remove(filepath.Join(d.inside, "other")); err != nil {
		t.Fatal(err)
	}
	for !client.write(rows) {
		time.Sleep(10 * time.Millisecond) // because the server checks the free space only from time to time
	}
	client.has(rows + 1)
}
