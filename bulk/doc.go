// Package bulk reads many rows fast: from a table or a query of a Spanner database, from text or from columnar files, behind one interface. A Source is
// cut into segments, which are read at the same time without overlap, and gives batches of columns: Apache Arrow's record batches.
//
//	snapshot, err := bulk.NewSnapshot(ctx, client, spanner.StrongRead())
//	table, err := snapshot.Table(ctx, "customer", bulk.Options{})
//	text, err := file.Open("customer*.tbl", file.Options{Schema: table.Schema()})
//	for _, source := range []bulk.Source{table, text} {
//		err = bulk.Each(ctx, source, 4, func(ctx context.Context, reader int, batch arrow.RecordBatch) error {
//			...
//		})
//	}
//
// Package bulk/file has the files, and writes them; package bulk/transfer moves rows from a source into a table, and from a database into files, in ways that can
// be interrupted and resumed. All work on any Spanner endpoint. Package arrowtype says what a Spanner value is in Arrow.
//
// Memory is bounded: a reader holds one batch, of at most BatchRows rows, however large the source is.
//
// Imports of this module: arrowtype.
package bulk

import _ "github.com/apache/arrow-go/v18/arrow/extensions" // registers arrow.json and arrow.uuid

// BatchRows is the most rows of a batch. It makes batches of some 100 KiB to 1 MiB of usual rows, which stay in the processor's caches.
const BatchRows = 4096

// BatchBytes is about the most bytes of text or of values in a batch, where rows are long.
const BatchBytes = 2 << 20
