// Package watch delivers the changes of a Spanner database to a handler: every change at least once, and the changes of one key in the order of
// their commits. It is a client: it talks to any Spanner endpoint through the official library.
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
// A Source says where changes come from. Tables polls tables that have a column with the option allow_commit_timestamp. It sees rows as they are
// now: several changes of a row between two polls come as one, and deletes are not seen. Stream reads a change stream of the database, which has
// every change, also deletes, in whole transactions. ChangeSets let Tables poll tables without a commit timestamp.
//
// A source consists of feeds: tables that are polled, or a change stream. Feeds run concurrently, and one that fails does not stop the others.
// For each feed, a Repository keeps a Checkpoint of what was handled, from which the next Run goes on. A checkpoint moves only after the handler
// has returned nil. After a crash of the watcher or its machine, the handler therefore gets again what it has handled since the last stored
// checkpoint. No change is left out, and the changes of each key come in order again from there.
//
// Imports of this module: nothing.
package watch
