package main

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Author, Book and some other models embed gorm.Model. It has a key that the database generates, and the times of
// creation, change and deletion. The time of deletion has an index.

type Author struct {
	gorm.Model
	Name    string  `gorm:"size:100;not null;index:authors_by_name,priority:1"`
	Born    date    `gorm:"index:authors_by_name,priority:2,sort:desc"`
	Email   *string `gorm:"index:authors_by_email,class:UNIQUE NULL_FILTERED"`
	Profile document
	Fee     decimal
	Books   []Book
}

type Book struct {
	gorm.Model
	Title      string
	UpperTitle string `gorm:"->;type:STRING(MAX) AS (UPPER(title)) STORED;default:(-)"`
	Price      float64
	Weight     float32
	Pages      int  `gorm:"check:books_have_pages,pages >= 0"`
	InPrint    bool `gorm:"default:true"`
	Cover      []byte
	Keywords   texts `gorm:"size:20"`
	Changed    commitTimestamp
	AuthorID   *uint
	Author     *Author
	Tags       []Tag `gorm:"many2many:book_tags"`
}

// Tag is a model whose key is a string.
type Tag struct {
	Name  string `gorm:"primaryKey"`
	Notes string
}

// Reader is a model whose key comes from a sequence.
type Reader struct {
	ID   uint `gorm:"primarykey" gorm_sequence_name:"reader_ids"`
	Name string
}

// Chapter is interleaved in Book. GORM's migrator cannot create interleaved tables, so createChapters creates this
// table.
type Chapter struct {
	ID     uint  `gorm:"primaryKey;autoIncrement:false"`
	Number int64 `gorm:"primaryKey;autoIncrement:false"`
	Title  string
}

const createChapters = "CREATE TABLE IF NOT EXISTS `chapters` (`id` INT64, `number` INT64, `title` STRING(MAX)) PRIMARY KEY (`id`, `number`), " +
	"INTERLEAVE IN PARENT `books` ON DELETE CASCADE"

// commitTimestamp is a column that holds the commit timestamp of the row's last write.
type commitTimestamp struct{ sql.NullTime }

func (commitTimestamp) GormDataType() string {
	return "TIMESTAMP OPTIONS (allow_commit_timestamp=true)"
}

func (commitTimestamp) GormValue(context.Context, *gorm.DB) clause.Expr {
	return clause.Expr{SQL: "PENDING_COMMIT_TIMESTAMP()"}
}

// In the second version of the schema, the table authors has two more columns, one more index and a longer column
// authors.name. The table awards is new.

type laterAuthor struct {
	gorm.Model
	Name    string  `gorm:"size:200;not null;index:authors_by_name,priority:1"`
	Born    date    `gorm:"index:authors_by_name,priority:2,sort:desc"`
	Email   *string `gorm:"index:authors_by_email,class:UNIQUE NULL_FILTERED"`
	Profile document
	Fee     decimal
	Country string `gorm:"size:2;not null;default:'at';index"`
	Retired bool
}

func (laterAuthor) TableName() string { return "authors" }

type Award struct {
	gorm.Model
	Name     string
	AuthorID uint
	Author   laterAuthor
}

// sequenced and counted are models whose keys are generated in the other ways that dialect.keys selects.

type sequenced struct {
	gorm.Model
	Name string
}

type counted struct {
	gorm.Model
	Name string
}
