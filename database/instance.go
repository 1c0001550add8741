package database

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// DefaultInstance is the name of an instance that exists from the first start on. Clients that are configured for
// Spanner Omni use it.
const DefaultInstance = "projects/default/instances/default"

// DefaultConfig is the id of the instance configuration that an instance gets if its creator names no configuration.
// Google's emulator uses the same id.
const DefaultConfig = "emulator-config"

// Instance is an instance. NodeCount and ProcessingUnits are only shown to clients: they limit nothing.
type Instance struct {
	Name            string // projects/P/instances/I
	Config          string // projects/P/instanceConfigs/C
	DisplayName     string
	NodeCount       int32
	ProcessingUnits int32
	Labels          map[string]string
	Created         time.Time
	Updated         time.Time
}

// Instance finds an instance by its full name.
func (r *Registry) Instance(name string) (*Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance(name)
}

func (r *Registry) instance(name string) (*Instance, error) {
	if i := r.instances[name]; i != nil {
		return i, nil
	}
	if err := CheckInstanceName(name); err != nil {
		return nil, err
	}
	return nil, usererror.InstanceNotFound(name)
}

// Instances lists the instances of a project (projects/P) by name.
func (r *Registry) Instances(project string) []*Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Instance
	for name, i := range r.instances {
		if strings.HasPrefix(name, project+"/") {
			list = append(list, i)
		}
	}
	sort.Slice(list, func(a, b int) bool { return list[a].Name < list[b].Name })
	return list
}

// configure sets Config to the default configuration if it is empty. It is empty in stores that earlier releases wrote.
func (i *Instance) configure() {
	if i.Config == "" {
		project, _, _ := strings.Cut(i.Name, "/instances/")
		i.Config = project + "/instanceConfigs/" + DefaultConfig
	}
}

// CreateInstance stores a new instance. It sets Created and Updated, and Config if that is empty.
func (r *Registry) CreateInstance(i Instance) (*Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instances[i.Name] != nil {
		return nil, usererror.InstanceExists(i.Name)
	}
	i.Created = r.cfg.Clock()
	i.configure()
	return r.putInstance(i)
}

// UpdateInstance replaces an instance. It keeps the old Created and sets Updated.
func (r *Registry) UpdateInstance(i Instance) (*Instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, err := r.instance(i.Name)
	if err != nil {
		return nil, err
	}
	i.Created = old.Created
	return r.putInstance(i)
}

func (r *Registry) putInstance(i Instance) (*Instance, error) {
	i.Updated = r.cfg.Clock()
	if err := meta.Store(r.store, meta.Key(meta.Instance, i.Name), i); err != nil {
		return nil, fmt.Errorf("store instance: %w", err)
	}
	r.instances[i.Name] = &i
	return &i, nil
}
