package mvcc

import (
	"context"
	"fmt"
)

// Verify reads all versions of all keys. It calls report for each malformed version: one whose key has no timestamp, or
// whose value is not empty and does not begin with liveMark. It returns the number of versions.
func (v *Versions) Verify(ctx context.Context, report func(error)) (versions int64, err error) {
	it, err := v.store.kv.NewIter(v.bound(nil, nil), v.end(nil, nil))
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if versions++; versions%1000 == 0 && ctx.Err() != nil {
			return versions, ctx.Err()
		}
		if _, _, err := splitVersion(it.Key()); err != nil {
			report(err)
		}
		val, err := it.Value()
		if err != nil {
			return versions, err
		}
		if len(val) > 0 && val[0] != liveMark {
			report(fmt.Errorf("version %x begins with %#x", it.Key(), val[0]))
		}
	}
	return versions, it.Error()
}
