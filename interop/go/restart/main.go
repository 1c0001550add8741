// Command restart is a program that uses the official Go client. It commits again and again while the server is
// restarted. The script interop/restart runs it.
//
// The command line is: restart DATABASE STOP. The program adds one to a row of the table Counters until the file STOP
// exists, and prints a line after each commit. It fails on any error, and if at the end the row does not hold the
// number of commits.
//
// Imports of this module: nothing.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"cloud.google.com/go/spanner"
)

const id = "go"

func main() {
	ctx := context.Background()
	client, err := spanner.NewClientWithConfig(ctx, os.Args[1], spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for committed := int64(0); ; committed++ {
		if _, err := os.Stat(os.Args[2]); err == nil {
			return
		}
		_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			row, err := tx.ReadRow(ctx, "Counters", spanner.Key{id}, []string{"N"})
			if err != nil {
				return err
			}
			var n int64
			if err := row.Column(0, &n); err != nil {
				return err
			}
			if n != committed {
				return fmt.Errorf("the row holds %d after %d commits", n, committed)
			}
			_, err = tx.Update(ctx, spanner.Statement{SQL: "UPDATE Counters SET N = N + 1 WHERE Id = @id", Params: map[string]any{"id": id}})
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("committed", committed+1)
		time.Sleep(20 * time.Millisecond)
	}
}
