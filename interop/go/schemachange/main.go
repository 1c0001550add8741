// Command schemachange is a program that uses the official Go client. It changes the schema of a large table, and polls
// until the change is complete, with the client's default settings. Meanwhile the server is killed and started again.
// The script interop/restart runs it.
//
// The command line is: schemachange DATABASE. The program prints a line when the operation has begun, and the progress
// after each poll. It fails on any error, if the progress decreases, and if the operation does not say when one of the
// statements took effect.
//
// Imports of this module: nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var statements = []string{
	"CREATE INDEX GoByV ON Facts(V) STORING (Text)",
	"ALTER TABLE Facts ADD COLUMN GoTwice INT64 AS (V * 2) STORED",
	"ALTER TABLE Facts ADD CONSTRAINT GoSmall CHECK (V < 1000000)",
	"ALTER TABLE Facts ADD COLUMN GoWord STRING(20) NOT NULL DEFAULT ('word')",
	"CREATE UNIQUE INDEX GoByText ON Facts(Text, V)",
}

func main() {
	ctx := context.Background()
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: os.Args[1], Statements: statements})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("began", op.Name())
	follow(ctx, op)
	if err := op.Wait(ctx); err != nil {
		log.Fatal("wait: ", err)
	}
	m, err := op.Metadata()
	if err != nil {
		log.Fatal(err)
	}
	if len(m.CommitTimestamps) != len(statements) {
		log.Fatalf("%d statements have taken effect at %v", len(statements), m.CommitTimestamps)
	}
	for i, at := range m.CommitTimestamps {
		if i > 0 && !m.CommitTimestamps[i-1].AsTime().Before(at.AsTime()) || m.Progress[i].ProgressPercent != 100 || !m.Progress[i].EndTime.AsTime().Equal(at.AsTime()) {
			log.Fatalf("statement %d: %v, commit timestamps %v", i, m.Progress[i], m.CommitTimestamps)
		}
	}
	fmt.Println("done")
}

// isUnanswered reports whether a poll ended without the server's answer. The client gives up a poll after 10 seconds,
// and a server that was killed may take longer to read its log, so an application polls again.
func isUnanswered(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Unavailable || errors.Is(err, context.DeadlineExceeded)
}

// follow polls an operation until it is done. The progress must not decrease, not even when the server restarts.
func follow(ctx context.Context, op *database.UpdateDatabaseDdlOperation) {
	last := 0
	for ; !op.Done(); time.Sleep(50 * time.Millisecond) {
		err := op.Poll(ctx)
		if !op.Done() && isUnanswered(err) {
			continue
		}
		if err != nil {
			log.Fatal("poll: ", err)
		}
		m, err := op.Metadata()
		if err != nil {
			log.Fatal(err)
		}
		now := 0
		for _, p := range m.Progress {
			now += int(p.ProgressPercent)
		}
		if now < last {
			log.Fatalf("the progress falls from %d to %d", last, now)
		}
		fmt.Println("progress", now)
		last = now
	}
}
