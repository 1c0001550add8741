// Package watch delivers the changes of a Spanner database to a handler: every change at least once, and the changes
// of one key in the order of their commits. The package is a client: it talks to any Spanner endpoint through the
// official library.
//
//	w, err := watch.New(watch.Options{
//		Source:  &watch.Tables{Client: client},
//		Handler: watch.EachChange(func(ctx context.Context, tx *watch.Transaction, c *watch.Change) error {
//			var name string
//			err := c.Values.Decode("Name", &name) // a column of the row
//			fmt.Println(c.Table, c.Kind, name)
//			return err
//		}),
//		Repository: watch.NewFile("checkpoints.json"),
//	})
//	err = w.Run(ctx)
//
// A Source says where changes come from. Tables polls tables that have a column with the option
// allow_commit_timestamp. A poll sees rows as they are now: several changes of a row between two polls come as one,
// and deletes do not come at all. Stream reads a change stream of the database, which has every change, deletes
// included, in whole transactions. With ChangeSets, Tables can poll tables without a commit timestamp.
//
// A source consists of feeds. Each polled table is a feed, and so is a change stream. Feeds run concurrently, and a
// feed that fails does not stop the others. For each feed, a Repository keeps a Checkpoint that says what was handled.
// The next Run continues from there. A checkpoint moves only after the handler has returned nil. After a crash of the
// watcher or its machine, the handler therefore gets all changes after the last stored checkpoint, including those that
// it has already handled. No change is left out, and the changes of each key still come in the order of their commits.
//
// Imports of this module: nothing.
package watch
