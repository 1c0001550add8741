package result

import (
	"github.com/crowfoot-db/crowfoot/changestream"
)

// LiveRows are the rows of a change stream, which arrive while the client reads. Each row is one value.
type LiveRows interface {
	// Next waits for the next row and moves to it.
	Next() (bool, error)
	// Ready reports whether Next would return at once: with a row, or at the end.
	Ready() bool
	// Record returns the encoded google.protobuf.Value of the current row. The caller may change its bytes.
	Record() []byte
	// Position returns the position after the current row, where a query can continue.
	Position() changestream.Position
}

// appendLive sends rows as they arrive. Before it waits for a row, it sends the frame, so that the metadata and the
// rows in the frame do not wait for a later row.
func (w *streamer) appendLive() error {
	for {
		idle := !w.Live.Ready() && len(w.frame.Data) > 0
		// A stream that is resumed within a value sends no frame here: see nextIfFull.
		if w.resume.piece == 0 && (idle || len(w.frame.Data) >= w.flush) {
			if err := w.next(); err != nil {
				return err
			}
		}
		ok, err := w.Live.Next()
		if !ok || err != nil {
			return err
		}
		record := w.Live.Record()
		w.liveSize += int64(len(record))
		if err := w.appendPieces(record); err != nil {
			return err
		}
		w.resume.piece = 0
		w.Sent++
		at := w.Live.Position()
		w.token.from = Position{row: uint64(at.Timestamp), value: at.Sequence}
	}
}
