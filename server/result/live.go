package result

import (
	"github.com/crowfoot-db/crowfoot/changestream"
)

// LiveRows are the rows of a change stream, which come while the client reads. Each is one value.
type LiveRows interface {
	// Next moves to the next row, and waits for it.
	Next() (bool, error)
	// Ready says whether Next has a row, or the end, without waiting.
	Ready() bool
	// Record is the google.protobuf.Value of the current row. The caller may change its bytes.
	Record() []byte
	// Position is where a query goes on behind the current row.
	Position() changestream.Position
}

// appendLive sends rows as they come. A row does not wait in a frame for another one that is not there yet, nor does the metadata.
func (w *streamer) appendLive() error {
	for {
		idle := !w.Live.Ready() && len(w.frame.Data) > 0
		if w.resume.piece == 0 && (idle || len(w.frame.Data) >= w.flush) { // see nextIfFull
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
