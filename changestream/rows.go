package changestream

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// This file makes heartbeat records and child partition records. No commit writes these; a reader makes them when they
// are due. The form of child partition records is documented at
// https://cloud.google.com/spanner/docs/change-streams/details#child-partitions-records.

// maxChildren is the maximum number of partitions in one record. If there are more, the reader makes several records.
const maxChildren = 100

func heartbeatRecord(at mvcc.Timestamp) []byte {
	fields := appendText(nil, at.Time().Format(timestampLayout))
	return appendRecordEnd(append(appendRecordHead(nil, heartbeat, len(fields)), fields...), heartbeat)
}

// childRecords makes the records that tell a client which partitions to read from a timestamp on. The partitions must
// be in the order of keys. A record names the parents of each partition. But if initial is true, the records answer a
// query that lists partitions, and name no parents.
func childRecords(from mvcc.Timestamp, partitions []*Partition, initial bool) (rows []row) {
	for part := range slices.Chunk(partitions, maxChildren) {
		var children []byte
		for _, p := range part {
			var parents []byte
			for _, id := range p.parents {
				if !initial {
					parents = appendText(parents, p.stream.log.tokenOf(p.stream.id, id))
				}
			}
			children = appendListHead(children, valueSize(len(p.token))+valueSize(len(parents)))
			children = append(appendListHead(appendText(children, p.token), len(parents)), parents...)
		}
		fields := appendText(nil, from.Time().Format(timestampLayout))
		fields = appendText(fields, fmt.Sprintf("%08d", len(rows)))
		fields = append(appendListHead(fields, len(children)), children...)
		record := append(appendRecordHead(nil, childPartitions, len(fields)), fields...)
		rows = append(rows, row{appendRecordEnd(record, childPartitions), Position{from, uint32(len(rows)) + 1}})
	}
	return rows
}
