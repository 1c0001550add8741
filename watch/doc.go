// Package watch follows what changes in a Spanner database and hands it to a handler: every change at least once, and the changes of one key in
// the order of their commits. It is a client: it talks to any Spanner endpoint through the official library.
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
// A Source says where changes come from. Tables polls tables that have a column with the option allow_commit_timestamp: it sees rows as they are
// now, so that changes of one row between two polls are one, and deletes are not seen. Stream reads a change stream of the database, which shows every
// change, deletes too, in whole transactions. Tables without a commit timestamp can be polled through ChangeSets.
//
// A source consists of feeds: tables that are polled, or a change stream. Feeds run beside each other; one that fails does not stop others. For each,
// a Repository keeps a Checkpoint of what was handled, from which the next Run goes on. A checkpoint moves only after the handler has returned nil.
// So after a crash, of the watcher or of its machine, the handler is called again with what it has handled since the last checkpoint was stored; nothing
// is left out, and for each key the changes come in order again from there.
//
// Imports of this module: nothing.
package watch
