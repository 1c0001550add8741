package admin

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/listing"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// instanceConfigs are the instance configurations, sorted by id. There are several, because some clients and scripts
// name a region. It makes no difference which of them an instance has, because one process serves all data. The first
// of a configuration's leaders is its default leader.
var instanceConfigs = []struct {
	id, displayName string
	leaders         []string
}{
	{database.DefaultConfig, "Crowfoot", []string{"local"}},
	{"eur3", "Europe (Belgium/Netherlands)", []string{"europe-west1", "europe-west4"}},
	{"nam3", "United States (Northern Virginia/South Carolina)", []string{"us-east4", "us-east1"}},
	{"regional-asia-northeast1", "Tokyo (asia-northeast1)", []string{"asia-northeast1"}},
	{"regional-europe-west1", "Belgium (europe-west1)", []string{"europe-west1"}},
	{"regional-us-central1", "Iowa (us-central1)", []string{"us-central1"}},
	{"regional-us-east1", "South Carolina (us-east1)", []string{"us-east1"}},
	{"regional-us-east4", "Northern Virginia (us-east4)", []string{"us-east4"}},
	{"regional-us-west1", "Oregon (us-west1)", []string{"us-west1"}},
}

func configExists(name string) bool {
	project, id, ok := strings.Cut(name, "/instanceConfigs/")
	if !ok || database.CheckProjectName(project) != nil {
		return false
	}
	for _, c := range instanceConfigs {
		if c.id == id {
			return true
		}
	}
	return false
}

func configProto(project string, i int) *instancepb.InstanceConfig {
	c := instanceConfigs[i]
	config := &instancepb.InstanceConfig{
		Name:          project + "/instanceConfigs/" + c.id,
		DisplayName:   c.displayName,
		ConfigType:    instancepb.InstanceConfig_GOOGLE_MANAGED,
		LeaderOptions: c.leaders,
		State:         instancepb.InstanceConfig_READY,
	}
	for at, location := range c.leaders {
		config.Replicas = append(config.Replicas, &instancepb.ReplicaInfo{
			Location:              location,
			Type:                  instancepb.ReplicaInfo_READ_WRITE,
			DefaultLeaderLocation: at == 0,
		})
	}
	return config
}

func (s *instances) listInstanceConfigs(_ context.Context, req *instancepb.ListInstanceConfigsRequest) (*instancepb.ListInstanceConfigsResponse, error) {
	if err := database.CheckProjectName(req.Parent); err != nil {
		return nil, err
	}
	var list []*instancepb.InstanceConfig
	for i := range instanceConfigs {
		list = append(list, configProto(req.Parent, i))
	}
	list, next, err := listing.Page(req, list, (*instancepb.InstanceConfig).GetName)
	if err != nil {
		return nil, err
	}
	return &instancepb.ListInstanceConfigsResponse{InstanceConfigs: list, NextPageToken: next}, nil
}

func (s *instances) getInstanceConfig(_ context.Context, req *instancepb.GetInstanceConfigRequest) (*instancepb.InstanceConfig, error) {
	project, id, ok := strings.Cut(req.Name, "/instanceConfigs/")
	if !ok || database.CheckProjectName(project) != nil {
		return nil, usererror.InvalidResourceName("instance config", req.Name)
	}
	for i, c := range instanceConfigs {
		if c.id == id {
			return configProto(project, i), nil
		}
	}
	return nil, usererror.InstanceConfigNotFound(req.Name)
}
