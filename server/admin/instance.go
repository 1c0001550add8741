package admin

import (
	"context"
	"slices"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// instances implements google.spanner.admin.instance.v1.InstanceAdmin.
type instances struct {
	registry   *database.Registry
	operations *operations
}

// methods returns the RPCs about instances and their configurations. Other methods of InstanceAdmin (partitions, custom
// configurations, SetIamPolicy) get UNIMPLEMENTED; docs/limits.md lists them.
func (s *instances) methods() []rpc.Method {
	return []rpc.Method{
		rpc.Unary("ListInstanceConfigs", s.listInstanceConfigs),
		rpc.Unary("GetInstanceConfig", s.getInstanceConfig),
		rpc.Unary("ListInstances", s.listInstances),
		rpc.Unary("GetInstance", s.getInstance),
		rpc.Unary("CreateInstance", s.createInstance),
		rpc.Unary("UpdateInstance", s.updateInstance),
		rpc.Unary("DeleteInstance", s.deleteInstance),
		rpc.Unary("TestIamPermissions", s.testIAMPermissions),
		rpc.Unary("GetIamPolicy", s.getIAMPolicy),
	}
}

// processingUnitsPerNode is the number of processing units in a node:
// https://cloud.google.com/spanner/docs/compute-capacity.
const processingUnitsPerNode = 1000

func instanceProto(i *database.Instance) *instancepb.Instance {
	return &instancepb.Instance{
		Name:            i.Name,
		Config:          i.Config,
		DisplayName:     i.DisplayName,
		NodeCount:       i.NodeCount,
		ProcessingUnits: i.ProcessingUnits,
		State:           instancepb.Instance_READY,
		Labels:          i.Labels,
		InstanceType:    instancepb.Instance_PROVISIONED,
		CreateTime:      timestamppb.New(i.Created),
		UpdateTime:      timestamppb.New(i.Updated),
	}
}

func (s *instances) listInstances(_ context.Context, req *instancepb.ListInstancesRequest) (*instancepb.ListInstancesResponse, error) {
	if err := database.CheckProjectName(req.Parent); err != nil {
		return nil, err
	}
	list, err := filterInstances(s.registry.Instances(req.Parent), req.Filter)
	if err != nil {
		return nil, err
	}
	list, next, err := listing.Page(req, list, func(i *database.Instance) string { return i.Name })
	if err != nil {
		return nil, err
	}
	reply := &instancepb.ListInstancesResponse{NextPageToken: next}
	for _, i := range list {
		reply.Instances = append(reply.Instances, instanceProto(i))
	}
	return reply, nil
}

// filterInstances returns the instances that match filter: terms name:text, display_name:text and labels.k:v, joined by
// AND.
func filterInstances(list []*database.Instance, filter string) ([]*database.Instance, error) {
	var labels []string
	for _, term := range strings.Fields(filter) {
		field, text, ok := strings.Cut(term, ":")
		text = strings.ToLower(text)
		switch {
		case strings.EqualFold(term, "AND"):
		case strings.HasPrefix(term, "labels."):
			labels = append(labels, term)
		case ok && field == "name":
			list = slices.DeleteFunc(list, func(i *database.Instance) bool { return !strings.Contains(i.Name, text) })
		case ok && field == "display_name":
			list = slices.DeleteFunc(list, func(i *database.Instance) bool {
				return !strings.Contains(strings.ToLower(i.DisplayName), text)
			})
		default:
			return nil, usererror.InvalidFilter(filter)
		}
	}
	conditions, err := listing.ParseLabelFilter(strings.Join(labels, " "))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(i *database.Instance) bool { return !conditions.Matches(i.Labels) }), nil
}

func (s *instances) getInstance(_ context.Context, req *instancepb.GetInstanceRequest) (*instancepb.Instance, error) {
	i, err := s.registry.Instance(req.Name)
	if err != nil {
		return nil, err
	}
	p := instanceProto(i)
	if req.FieldMask != nil {
		keepFields(p, req.FieldMask.Paths)
	}
	return p, nil
}

// keepFields clears all fields of m except its name and the fields in paths. The path * stands for all fields.
func keepFields(m proto.Message, paths []string) {
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		if name != "name" && !slices.Contains(paths, name) && !slices.Contains(paths, "*") {
			r.Clear(fields.Get(i))
		}
	}
}

func (s *instances) createInstance(ctx context.Context, req *instancepb.CreateInstanceRequest) (*longrunningpb.Operation, error) {
	if err := database.CheckProjectName(req.Parent); err != nil {
		return nil, err
	}
	name := req.Parent + "/instances/" + req.InstanceId
	if err := database.CheckInstanceName(name); err != nil {
		return nil, err
	}
	given := req.Instance
	if given.GetName() != "" && given.GetName() != name {
		return nil, usererror.InvalidResourceName("instance", given.GetName())
	}
	i := database.Instance{Name: name, Config: given.GetConfig(), DisplayName: given.GetDisplayName(), Labels: given.GetLabels()}
	if i.DisplayName == "" {
		i.DisplayName = req.InstanceId
	}
	if i.Config == "" {
		return nil, usererror.MissingField("instance.config")
	}
	if !configExists(i.Config) {
		return nil, usererror.InstanceConfigNotFound(i.Config)
	}
	if err := listing.CheckLabels(i.Labels); err != nil {
		return nil, err
	}
	if err := setCapacity(&i, given); err != nil {
		return nil, err
	}
	created, err := s.registry.CreateInstance(i)
	if err != nil {
		return nil, err
	}
	p := instanceProto(created)
	metadata := &instancepb.CreateInstanceMetadata{Instance: p, StartTime: p.CreateTime, EndTime: p.CreateTime}
	return s.operations.start(ctx, task{resource: name, metadata: metadata, work: func(context.Context, *operation) (proto.Message, error) { return p, nil }})
}

// setCapacity sets the size of an instance, in nodes or processing units. The default size is one node.
func setCapacity(i *database.Instance, p *instancepb.Instance) error {
	nodes, units := p.GetNodeCount(), p.GetProcessingUnits()
	switch {
	case nodes < 0 || units < 0:
		return usererror.InvalidCapacity()
	case nodes > 0 && units > 0 && nodes*processingUnitsPerNode != units:
		return usererror.AmbiguousCapacity()
	case units > 0 && units < processingUnitsPerNode && units%100 != 0, units > processingUnitsPerNode && units%processingUnitsPerNode != 0:
		return usererror.InvalidCapacity()
	case units > 0:
		i.ProcessingUnits, i.NodeCount = units, units/processingUnitsPerNode
	default:
		i.NodeCount = max(nodes, 1)
		i.ProcessingUnits = i.NodeCount * processingUnitsPerNode
	}
	return nil
}

func (s *instances) updateInstance(ctx context.Context, req *instancepb.UpdateInstanceRequest) (*longrunningpb.Operation, error) {
	old, err := s.registry.Instance(req.GetInstance().GetName())
	if err != nil {
		return nil, err
	}
	if len(req.GetFieldMask().GetPaths()) == 0 {
		return nil, usererror.MissingField("field_mask")
	}
	next := *old
	for _, path := range req.FieldMask.Paths {
		switch path {
		case "display_name":
			next.DisplayName = req.Instance.DisplayName
		case "labels":
			next.Labels = req.Instance.Labels
			err = listing.CheckLabels(next.Labels)
		case "node_count":
			err = setCapacity(&next, &instancepb.Instance{NodeCount: req.Instance.NodeCount})
		case "processing_units":
			err = setCapacity(&next, &instancepb.Instance{ProcessingUnits: req.Instance.ProcessingUnits})
		case "edition", "default_backup_schedule_type", "autoscaling_config": // have no effect in Crowfoot
		default:
			err = usererror.InvalidFieldMask(path)
		}
		if err != nil {
			return nil, err
		}
	}
	updated, err := s.registry.UpdateInstance(next)
	if err != nil {
		return nil, err
	}
	p := instanceProto(updated)
	metadata := &instancepb.UpdateInstanceMetadata{Instance: p, StartTime: p.UpdateTime, EndTime: p.UpdateTime}
	return s.operations.start(ctx, task{resource: p.Name, metadata: metadata, work: func(context.Context, *operation) (proto.Message, error) { return p, nil }})
}

func (s *instances) deleteInstance(_ context.Context, req *instancepb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	if _, err := s.registry.Instance(req.Name); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, s.operations.dropping(req.Name, func() (*database.Dropped, error) { return s.registry.DeleteInstance(req.Name) })
}
