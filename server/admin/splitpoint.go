package admin

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Limits of AddSplitPoints: https://cloud.google.com/spanner/quotas#split-point-limits and the comments of
// google.spanner.admin.database.v1.SplitPoints. Cloud Spanner also limits the points added per minute and per day,
// because it moves rows to another server for each point. Crowfoot moves no rows, so it has no such limit.
const (
	maxSplitPoints   = 100 // points in a request
	splitPointLife   = 10 * 24 * time.Hour
	longestSplitLife = 30 * 24 * time.Hour
	maxInitiator     = 50 // characters; longer names are cut
	defaultInitiator = "CloudAddSplitPointsAPI"
)

// addSplitPoints answers AddSplitPoints. It adds all points of the request, or none if one is invalid.
func (s *databases) addSplitPoints(_ context.Context, req *databasepb.AddSplitPointsRequest) (*databasepb.AddSplitPointsResponse, error) {
	d, err := s.registry.Database(req.Database)
	if err != nil {
		return nil, err
	}
	if len(req.SplitPoints) == 0 {
		return nil, usererror.MissingField("split_points")
	}
	a := splitAdder{catalog: d.Catalog(), now: s.clock(), initiator: initiatorOf(req.Initiator)}
	for _, p := range req.SplitPoints {
		if err := a.add(p); err != nil {
			return nil, err
		}
		if len(a.points) > maxSplitPoints {
			return nil, usererror.TooManySplitPoints(maxSplitPoints)
		}
	}
	return &databasepb.AddSplitPointsResponse{}, d.AddSplitPoints(a.points)
}

func initiatorOf(tag string) string {
	if tag == "" {
		return defaultInitiator
	}
	if runes := []rune(tag); len(runes) > maxInitiator {
		return string(runes[:maxInitiator])
	}
	return tag
}

// splitAdder converts the split points of a request to those of package split, and collects them.
type splitAdder struct {
	catalog   *schema.Catalog
	now       time.Time
	initiator string
	points    []split.Point
}

// add converts one message SplitPoints. For a table, Cloud Spanner's documentation allows one key, but the comments of
// the proto allow several. Crowfoot allows several, and each is a point of its own. For an index, the keys are the
// index key and, optionally, the key of the table.
func (a *splitAdder) add(p *databasepb.SplitPoints) error {
	point := split.Point{Initiator: a.initiator}
	var err error
	if point.Table, point.Index, err = a.object(p); err != nil {
		return err
	}
	if point.Expires, err = a.expiry(p.ExpireTime); err != nil {
		return err
	}
	if len(p.Keys) == 0 {
		return usererror.MissingField("split_points.keys")
	}
	if point.Index != nil {
		return a.addIndex(point, p.Keys)
	}
	for _, k := range p.Keys {
		if point.Key, err = splitKey(point.Table.FullName(), point.Table.Key, k.GetKeyParts().GetValues()); err != nil {
			return err
		}
		a.points = append(a.points, point)
	}
	return nil
}

// object finds the table and the index of a split point. A request that names an index may omit the table.
func (a *splitAdder) object(p *databasepb.SplitPoints) (t *schema.Table, x *schema.Index, err error) {
	switch {
	case p.Table == "" && p.Index == "":
		return nil, nil, usererror.MissingField("split_points.table")
	case p.Table == "":
		if x = a.catalog.Index(p.Index); x == nil {
			return nil, nil, usererror.SplitIndexNotFound(p.Index)
		}
		return x.Table, x, nil
	}
	if t = a.catalog.TableOrSynonym(p.Table); t == nil {
		return nil, nil, usererror.TableNotFound(p.Table)
	}
	if p.Index != "" {
		if x = t.Index(p.Index); x == nil {
			return nil, nil, usererror.IndexNotFound(p.Index, t.FullName())
		}
	}
	return t, x, nil
}

// expiry returns the expiration time of a point: t, or splitPointLife from now if t is nil. A time in the past is
// allowed: it removes the point.
func (a *splitAdder) expiry(t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return a.now.Add(splitPointLife), nil
	}
	if !t.IsValid() || t.AsTime().After(a.now.Add(longestSplitLife)) {
		return time.Time{}, usererror.InvalidSplitExpiry(longestSplitLife)
	}
	return t.AsTime(), nil
}

// addIndex adds a point of an index. keys[0] begins with the index key. The key of the table may be appended to
// keys[0], or may be keys[1], or may be missing.
func (a *splitAdder) addIndex(point split.Point, keys []*databasepb.SplitPoints_Key) (err error) {
	name := point.Index.FullName()
	if len(keys) > 2 {
		return usererror.InvalidSplitPoint(name, fmt.Sprintf("it having %d keys: an index key and the key of its table are the most", len(keys)))
	}
	parts, declared, whole := keys[0].GetKeyParts().GetValues(), len(point.Index.Key), len(point.Index.Key)+len(point.Table.Key)
	var tableParts []*structpb.Value
	switch {
	case len(keys) == 2:
		tableParts = keys[1].GetKeyParts().GetValues()
	case len(parts) == whole:
		parts, tableParts = parts[:declared], parts[declared:]
	}
	if point.Key, err = splitKey(name, point.Index.Key, parts); err != nil {
		return err
	}
	if len(keys) == 2 || len(tableParts) > 0 {
		if point.TableKey, err = splitKey(point.Table.FullName(), point.Table.Key, tableParts); err != nil {
			return err
		}
	}
	a.points = append(a.points, point)
	return nil
}

// splitKey decodes a complete key of a table or an index.
func splitKey(object string, key []schema.KeyPart, parts []*structpb.Value) ([]value.Value, error) {
	if len(parts) != len(key) {
		return nil, usererror.InvalidSplitPoint(object, fmt.Sprintf("its wrong number of key parts: expected %d, found %d", len(key), len(parts)))
	}
	vals := make([]value.Value, len(parts))
	for i, part := range parts {
		c := key[i].Column
		v, err := value.FromWire(part, c.Type)
		switch {
		case err != nil:
			return nil, usererror.InvalidSplitPoint(object, fmt.Sprintf("a value of column %s that is no %s: %v", c.Name, c.Type, err))
		case v.IsPending():
			return nil, usererror.InvalidSplitPoint(object, "a commit timestamp that is not known yet in column "+c.Name)
		case v.IsNull() && c.NotNull:
			return nil, usererror.InvalidSplitPoint(object, fmt.Sprintf("NULL in column %s, which is NOT NULL", c.Name))
		}
		vals[i] = v
	}
	return vals, nil
}
