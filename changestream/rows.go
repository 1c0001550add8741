package changestream

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// This file makes the records that readers make themselves, since no commit writes them: heartbeats and child partitions. The manual describes
// them: https://cloud.google.com/spanner/docs/change-streams/details#child-partitions-records.

// maxChildren is the maximum number of partitions in one record. An initial query, or the end of a partition, makes as many records as it needs.
const maxChildren = 100

func heartbeatRecord(at mvcc.Timestamp) []byte {
	fields := appendText(nil, at.Time().Format(timestampLayout))
	return appendRecordEnd(append(appendRecordHead(nil, heartbeat, len(fields)), fields...), heartbeat)
}

// childRecords makes the records that tell a client which partitions to read from a timestamp on. The partitions are in the order of keys. The
// record names the parents of each partition, unless it answers an initial query.
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
