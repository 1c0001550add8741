// Package database holds what one server serves: instances and their
// databases in one store, and for each database its catalog, its transactions,
// its schema changes and its prepared statements. The server above turns protos
// into calls of this package and rows into protos.
//
// Imports of this module: fault, kv, mvcc, schema, sql/analyze, sql/exec, sql/fn, sql/plan, sql/system, sql/tree, table, txn, value.
package database

// The signatures that server is written against (bodies follow in the files named):
//
// registry.go
//   type Config struct { Clock func() time.Time; Log *slog.Logger }
//   func Open(store kv.Store, cfg Config) (*Registry, error)
//   func (r *Registry) Close() error
//   type Instance struct { Name, Config, DisplayName string; NodeCount, ProcessingUnits int32; Labels map[string]string; Created, Updated time.Time }
//   func (r *Registry) Instance(name string) (*Instance, error)                // projects/P/instances/I; NOT_FOUND with ResourceInfo
//   func (r *Registry) Instances(project string) []*Instance                   // sorted by name
//   func (r *Registry) CreateInstance(i Instance) (*Instance, error)           // ALREADY_EXISTS
//   func (r *Registry) UpdateInstance(i Instance) (*Instance, error)
//   func (r *Registry) DeleteInstance(name string) error                       // and its databases
//   func (r *Registry) Database(name string) (*Database, error)                // hot path, lock-free
//   func (r *Registry) Databases(instance string) ([]*Database, error)         // sorted by name
//   func (r *Registry) CreateDatabase(ctx context.Context, name string, statements []string) (*Database, error)
//   func (r *Registry) DropDatabase(ctx context.Context, name string) error    // FAILED_PRECONDITION under drop protection
//
// database.go
//   func (d *Database) Name() string
//   func (d *Database) Created() time.Time
//   func (d *Database) DropProtection() bool; func (d *Database) SetDropProtection(bool) error
//   func (d *Database) Retention() time.Duration; func (d *Database) EarliestVersion() time.Time
//   func (d *Database) Dropped() bool                                         // a handle may outlive its database
//   func (d *Database) Catalog() *schema.Catalog                               // newest
//   func (d *Database) CatalogAt(ts mvcc.Timestamp) *schema.Catalog            // for reads in the past
//   func (d *Database) Transactions() *txn.Manager
//
// ddl.go
//   func (d *Database) UpdateSchema(ctx context.Context, statements []string, done func(i int, commit time.Time)) error
//       // in order, stops at the first failure; queues behind a running change. Syntax is checked by CheckSyntax before an operation starts.
//   func (d *Database) CheckSyntax(statements []string) error
//   func (d *Database) DDL() []string
//
// read.go
//   func (d *Database) Projection(c *schema.Catalog, tableName, index string, columns []string) (*table.Projection, error)
//       // cached; names resolved, NOT_FOUND errors; tells key column types so that the server can parse the KeySet
//
// statement.go
//   type Prepare struct { SQL string; Params map[string]*value.Type /* lower-cased names */; Catalog *schema.Catalog; ... }
//   func (d *Database) Prepare(ctx context.Context, c *schema.Catalog, sql string, params map[string]*value.Type) (*Statement, error)   // cached plan
//   type Statement struct {
//       Plan *plan.Plan
//       Params []Param           // {Name string (lower case), Type *value.Type}: what the plan wants, in the order of exec.Env.Params
//       Undeclared []Param       // inferred ones, for PLAN mode
//   }
//   func (s *Statement) IsDML() / IsQuery() / ReadsSystem() bool; Columns() []exec.Column ;
//   func (s *Statement) Run(ctx, RunEnv{View table.View | Writer table.Writer, Params []value.Value, Restrict *table.Span, Profile bool, Now time.Time}) (exec.Rows, error)
//
// partition.go
//   func (d *Database) Split(c, read spans or statement, max int) ([]table.Span, error)     // spans that together cover the scan, in order
//   func (d *Database) PartitionedDML(ctx, *Statement, params) (rowCount int64, err error)
