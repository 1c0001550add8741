package database

import (
	"context"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// maxDatabasesPerInstance is Cloud Spanner's quota: https://cloud.google.com/spanner/quotas#instance_limits.
const maxDatabasesPerInstance = 100

// A Creation is a database that is being made. Until its method End is called, no other request can make a database of
// the same name.
type Creation struct {
	registry *Registry
	name     string
	// Plan sets the following fields.
	first     *schema.Catalog
	sequences *sequence.Counters
}

// BeginDatabase begins to make a database. It fails if a database of that name exists or is being made. If a database
// of that name was dropped, it waits until the dropped one is erased.
func (r *Registry) BeginDatabase(ctx context.Context, name string) (*Creation, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.dropping[name] != nil {
		if err := r.awaitErased(ctx, r.dropping[name]); err != nil {
			return nil, err
		}
	}
	instance, _, _ := strings.Cut(name, "/databases/")
	if _, err := r.instance(instance); err != nil {
		return nil, err
	}
	if (*r.databases.Load())[name] != nil || r.creating[name] {
		return nil, usererror.DatabaseExists(name)
	}
	count := len(r.databasesOf(instance))
	for other := range r.creating {
		if strings.HasPrefix(other, instance+"/databases/") {
			count++
		}
	}
	if count >= maxDatabasesPerInstance {
		return nil, usererror.TooManyDatabases(instance, maxDatabasesPerInstance)
	}
	r.creating[name] = true
	return &Creation{registry: r, name: name}, nil
}

// awaitErased waits until the databases of d are erased. The caller holds mu, which awaitErased unlocks while it waits.
func (r *Registry) awaitErased(ctx context.Context, d *Dropped) error {
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-d.erased:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Plan makes the database's schema from DDL statements, without writing to the store. It returns the error of the first
// statement that fails. It takes minutes for many statements. protoDescriptors is a serialized FileDescriptorSet, or
// nil: see schemachange.Operation.
func (c *Creation) Plan(ctx context.Context, statements []string, protoDescriptors []byte) error {
	c.sequences = sequence.New(c.registry.store)
	var err error
	c.first, err = c.registry.firstCatalog(ctx, c.name, statements, c.sequences, protoDescriptors)
	return err
}

// Run makes the database with the schema that Plan has made. operation is the name of the long-running operation that
// makes the database, "" if there is none. Run stores this name with the database: see MadeBy.
func (c *Creation) Run(ctx context.Context, operation string) (*Database, error) {
	r := c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	instance, _, _ := strings.Cut(c.name, "/databases/")
	if _, err := r.instance(instance); err != nil { // the instance was deleted meanwhile
		return nil, err
	}
	d, err := r.newDatabase(ctx, c, operation)
	if err != nil {
		return nil, err
	}
	d.begin(r.running)
	r.publish(func(m map[string]*Database) { m[c.name] = d })
	return d, nil
}

// End ends the creation, whether Run has made the database or not. It lets other requests make a database of the name
// if none exists now.
func (c *Creation) End() {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	delete(c.registry.creating, c.name)
}

// CreateDatabase makes a database with the schema that DDL statements define. If a statement fails, it makes no
// database. protoDescriptors are serialized FileDescriptorSets; the statements may use the types in all of them.
func (r *Registry) CreateDatabase(ctx context.Context, name string, statements []string, protoDescriptors ...[]byte) (*Database, error) {
	c, err := r.BeginDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	defer c.End()
	if err := c.Plan(ctx, statements, slices.Concat(protoDescriptors...)); err != nil {
		return nil, err
	}
	return c.Run(ctx, "")
}
