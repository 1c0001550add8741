// Command gorm is an application that uses GORM and go-sql-spanner, Google's driver for database/sql. It creates
// tables for GORM's default models, changes the tables, writes and reads rows, drops the tables, and uses the driver's
// own statements. It connects to the server that SPANNER_EMULATOR_HOST names.
//
// The driver is the compiled library in PyPI's package spannerlib-python. The program does not contain Google's
// dialect of GORM, go-gorm-spanner. Instead, dialect.go and migrator.go send the same statements as those in the tests
// and the documentation of go-gorm-spanner.
//
// Imports of this module: nothing.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"reflect"
	"time"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

type app struct {
	name      string
	databases *database.DatabaseAdminClient
	sql       *sql.DB
	db        *gorm.DB
}

func main() {
	if len(os.Args) != 2 {
		fmt.Println("usage: gorm SPANNERLIB.SO")
		os.Exit(2)
	}
	a, err := open(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	steps := []struct {
		name string
		run  func() error
	}{
		{"migrate", a.migrate}, {"migrate unchanged", a.migrateUnchanged}, {"reflect", a.reflect},
		{"create", a.create}, {"associations", a.associations}, {"relations", a.relations}, {"query", a.query}, {"update", a.update}, {"conflicts", a.conflicts},
		{"soft delete", a.softDelete}, {"transactions", a.transactions}, {"errors", a.errors},
		{"migrate changes", a.migrateChanges}, {"migrate by hand", a.migrateByHand}, {"other keys", a.otherKeys},
		{"driver batches", a.batches}, {"driver settings", a.settings}, {"driver staleness", a.staleness}, {"driver partitioned dml", a.partitionedDML}, {"driver mutations", a.mutations},
		{"driver retries", a.retries}, {"drop", a.drop},
	}
	passed, failed := 0, 0
	for _, s := range steps {
		if err := s.run(); err != nil {
			failed++
			fmt.Printf("FAIL gorm %s: %v\n", s.name, err)
			continue
		}
		passed++
		fmt.Printf("ok   gorm %s\n", s.name)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// open creates an instance and a database, through the driver's option for emulators, and connects GORM to the
// database.
func open(libraryPath string) (*app, error) {
	l, err := openLibrary(libraryPath)
	if err != nil {
		return nil, err
	}
	a := &app{name: fmt.Sprintf("projects/interop/instances/gorm-%d/databases/app", time.Now().UnixNano())}
	a.sql, err = openDatabase(l, os.Getenv("SPANNER_EMULATOR_HOST")+"/"+a.name+";usePlainText=true;autoConfigEmulator=true")
	if err != nil {
		return nil, err
	}
	if a.databases, err = database.NewDatabaseAdminClient(context.Background()); err != nil {
		return nil, err
	}
	a.db, err = a.gorm(dialect{database: a.sql})
	return a, err
}

func (a *app) gorm(d dialect) (*gorm.DB, error) {
	return gorm.Open(d, &gorm.Config{PrepareStmt: true, TranslateError: true, Logger: logger.Default.LogMode(logger.Silent)})
}

// ddl returns the statements of GetDatabaseDdl.
func (a *app) ddl() ([]string, error) {
	response, err := a.databases.GetDatabaseDdl(context.Background(), &databasepb.GetDatabaseDdlRequest{Database: a.name})
	return response.GetStatements(), err
}

// same returns an error if got differs from want.
func same(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
