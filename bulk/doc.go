// Package bulk reads many rows fast, through one interface: from a table or a query of a Spanner database, from text
// files or from columnar files. A Source is divided into segments, which do not overlap and can be read concurrently.
// Reading a segment gives Apache Arrow's record batches, which hold the rows as columns.
//
//	snapshot, err := bulk.NewSnapshot(ctx, client, spanner.StrongRead())
//	table, err := snapshot.Table(ctx, "customer", bulk.Options{})
//	text, err := file.Open([]string{"customer*.tbl"}, file.Options{Schema: table.Schema()})
//	for _, source := range []bulk.Source{table, text} {
//		err = bulk.Each(ctx, source, 4, func(ctx context.Context, reader int, batch arrow.RecordBatch) error {
//			...
//		})
//	}
//
// Package bulk/file reads and writes files. Package bulk/transfer moves rows from a source into a table, and from a
// database into files; both operations can be interrupted and resumed. All three packages work with any Spanner
// endpoint. Package arrowtype defines how Spanner values are represented in Arrow.
//
// Memory is bounded: a reader holds one batch, of at most BatchRows rows, however large the source is.
//
// Imports of this module: arrowtype.
package bulk

import _ "github.com/apache/arrow-go/v18/arrow/extensions" // registers arrow.json and arrow.uuid

// BatchRows is the maximum number of rows in a batch. With rows of usual length, a batch then has 100 KiB to 1 MiB,
// which fits into the processor's caches.
const BatchRows = 4096

// BatchBytes is approximately the maximum number of bytes of texts and other values in a batch of long rows.
const BatchBytes = 2 << 20
