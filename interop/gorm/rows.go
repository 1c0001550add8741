package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

func (a *app) create() error {
	mail := "ann@example.com"
	ann := Author{Name: "Ann", Born: "1990-01-02", Email: &mail, Profile: `{"a": [1]}`, Fee: "12.5"}
	book := Book{Title: "One", Price: 9.5, Weight: 0.25, Pages: 3, Cover: []byte{0, 255}, Keywords: texts{"x", "y"}}
	if err := first(a.db.Create(&ann).Error, a.db.Create(&book).Error); err != nil {
		return err
	}
	if ann.ID == 0 || book.ID == 0 || book.UpperTitle != "ONE" || !book.InPrint || book.Changed.Valid {
		return fmt.Errorf("INSERT did not return what the database made: %+v", book)
	}
	var read Author
	var one Book
	if err := first(a.db.First(&read, ann.ID).Error, a.db.Take(&one, "title = ?", "One").Error); err != nil {
		return err
	}
	err := first(same([]any{read.Name, read.Fee, *read.Email, read.Profile}, []any{"Ann", decimal("12.5"), mail, document(`{"a":[1]}`)}),
		same([]any{one.Price, one.Weight, one.Pages, one.Cover, one.Keywords}, []any{9.5, float32(0.25), 3, []byte{0, 255}, texts{"x", "y"}}))
	if err != nil {
		return err
	}
	if !one.Changed.Valid || time.Since(one.Changed.Time).Abs() > time.Hour {
		return fmt.Errorf("no commit timestamp: %v", one.Changed)
	}
	readers := []Reader{{Name: "r1"}, {Name: "r2"}, {Name: "r3"}, {Name: "r4"}, {Name: "r5"}}
	if err := a.db.CreateInBatches(readers, 2).Error; err != nil {
		return err
	}
	var count int64
	err = a.db.Model(&Reader{}).Where("id IN ?", []uint{readers[0].ID, readers[1].ID, readers[4].ID}).Count(&count).Error
	return first(err, same(count, int64(3)), a.db.Unscoped().Delete(&one).Error)
}

// associations checks that GORM writes associated rows together with the row that owns them, by INSERT OR IGNORE, and
// reads them together with that row.
func (a *app) associations() error {
	bob := Author{Name: "Bob"}
	if err := a.db.Create(&bob).Error; err != nil {
		return err
	}
	books := []Book{
		{Title: "Two", Pages: 20, AuthorID: &bob.ID, Tags: []Tag{{Name: "novel"}, {Name: "long"}}},
		{Title: "Three", Pages: 30, AuthorID: &bob.ID, Tags: []Tag{{Name: "novel"}}}}
	four := Book{Title: "Four", Pages: 40, Author: &Author{Name: "Cyd"}}
	if err := first(a.db.Create(&books).Error, a.db.Create(&four).Error); err != nil {
		return err
	}
	var authors []Author
	err := a.db.Preload("Books", func(db *gorm.DB) *gorm.DB { return db.Order("pages") }).Preload("Books.Tags").Order("name").Find(&authors).Error
	if err != nil {
		return err
	}
	got := ""
	for _, author := range authors {
		got += author.Name
		for _, b := range author.Books {
			got += fmt.Sprint(" ", b.Title, len(b.Tags))
		}
		got += ";"
	}
	var joined []Book
	err = a.db.Joins("Author").Where("`Author`.`name` LIKE ?", "%b").Order("books.title DESC").Find(&joined).Error
	if err := first(err, same(got, "Ann;Bob Two2 Three1;Cyd Four0;"), same(len(joined), 2)); err != nil {
		return err
	}
	tagged := a.db.Model(&joined[0]).Association("Tags")
	var tags []string
	err = first(same(joined[0].Author.Name, "Bob"), tagged.Append(&Tag{Name: "new"}), tagged.Delete(&Tag{Name: "long"}),
		a.db.Table("book_tags").Where("book_id = ?", joined[0].ID).Order("tag_name").Pluck("tag_name", &tags).Error)
	return first(err, same(tags, []string{"new", "novel"}))
}

func (a *app) query() error {
	var titles []string
	err := a.db.Model(&Book{}).Where("pages BETWEEN ? AND ?", 20, 35).Where(a.db.Where("title LIKE ?", "T%").Or("title = @name", sql.Named("name", "x"))).
		Order("title").Limit(5).Offset(0).Pluck("title", &titles).Error
	if err := first(err, same(titles, []string{"Three", "Two"})); err != nil {
		return err
	}
	var sums []struct {
		Name  string
		Pages int64
		Total int64
	}
	err = a.db.Model(&Book{}).Select("authors.name, SUM(books.pages) AS pages, COUNT(*) AS total").Joins("JOIN authors ON authors.id = books.author_id").
		Group("authors.name").Having("SUM(books.pages) > ?", 10).Order("authors.name").Scan(&sums).Error
	if err := first(err, same(fmt.Sprint(sums), "[{Bob 50 2} {Cyd 40 1}]")); err != nil {
		return err
	}
	var long, hinted []string
	err = first(a.db.Model(&Author{}).Where("id IN (?)", a.db.Model(&Book{}).Select("author_id").Where("pages > ?", 35)).Pluck("name", &long).Error,
		a.db.Model(&Author{}).Clauses(forceIndex("authors_by_name")).Where(&Author{Name: "Bob"}).Pluck("name", &hinted).Error)
	if err := first(err, same(long, []string{"Cyd"}), same(hinted, []string{"Bob"})); err != nil {
		return err
	}
	var batches []int
	var some []Reader
	err = a.db.Where("name <> ?", "r9").FindInBatches(&some, 2, func(_ *gorm.DB, batch int) error {
		batches = append(batches, len(some))
		return nil
	}).Error
	var none Author
	missing := a.db.First(&none, "name = ?", "none").Error
	var raw int64
	err = first(err, same(batches, []int{2, 2, 1}), same(errors.Is(missing, gorm.ErrRecordNotFound), true),
		a.db.Raw("SELECT COUNT(*) FROM books@{FORCE_INDEX=_BASE_TABLE} WHERE pages > @least", map[string]any{"least": 5}).Scan(&raw).Error)
	return first(err, same(raw, int64(3)))
}

func (a *app) update() error {
	var book Book
	if err := a.db.Where("title = ?", "Two").First(&book).Error; err != nil {
		return err
	}
	before := book.Changed.Time
	book.Pages, book.InPrint = 21, false
	one := a.db.Save(&book)
	if err := first(one.Error, same(one.RowsAffected, int64(1))); err != nil {
		return err
	}
	many := a.db.Model(&Book{}).Where("pages >= ?", 30).Updates(map[string]any{"price": 1.5, "pages": gorm.Expr("pages + ?", 1), "cover": nil})
	column := a.db.Model(&book).UpdateColumn("weight", float32(0.5))
	zero := a.db.Model(&Book{}).Where("title = ?", "none").Update("pages", 1)
	without := a.db.Model(&Book{}).Update("pages", 1).Error
	if err := first(many.Error, column.Error, zero.Error, same([]int64{many.RowsAffected, column.RowsAffected, zero.RowsAffected}, []int64{2, 1, 0}),
		same(errors.Is(without, gorm.ErrMissingWhereClause), true)); err != nil {
		return err
	}
	var read Book
	err := a.db.First(&read, book.ID).Error
	if err == nil && !read.Changed.Time.After(before) {
		err = fmt.Errorf("the commit timestamp stays %v", before)
	}
	return first(err, same([]any{read.Pages, read.InPrint, read.Weight}, []any{21, false, float32(0.5)}))
}

func (a *app) conflicts() error {
	ann := Author{}
	if err := a.db.Where("name = ?", "Ann").First(&ann).Error; err != nil {
		return err
	}
	duplicate := a.db.Create(&Author{Model: gorm.Model{ID: ann.ID}, Name: "other"}).Error
	email := a.db.Create(&Author{Name: "other", Email: ann.Email}).Error
	if err := same([]bool{errors.Is(duplicate, gorm.ErrDuplicatedKey), errors.Is(email, gorm.ErrDuplicatedKey)}, []bool{true, true}); err != nil {
		return fmt.Errorf("%w: %w, %w", err, duplicate, email)
	}
	ann.Fee = "99"
	if err := a.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&ann).Error; err != nil {
		return err
	}
	ignored := a.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Tag{{Name: "novel", Notes: "x"}, {Name: "short", Notes: "y"}})
	var read Author
	var tags []Tag
	err := first(ignored.Error, same(ignored.RowsAffected, int64(1)), a.db.First(&read, ann.ID).Error, a.db.Order("name").Find(&tags).Error,
		same(read.Fee, decimal("99")), same(tags, []Tag{{"long", ""}, {"new", ""}, {"novel", ""}, {"short", "y"}}))
	var made, found Tag
	return first(err, a.db.Where(Tag{Name: "made"}).Attrs(Tag{Notes: "n"}).FirstOrCreate(&made).Error,
		a.db.Where(Tag{Name: "made"}).Assign(Tag{Notes: "m"}).FirstOrCreate(&found).Error, same([]Tag{made, found}, []Tag{{"made", "n"}, {"made", "m"}}))
}

func (a *app) softDelete() error {
	deleted := a.db.Where("title = ?", "Three").Delete(&Book{})
	var visible, all, gone int64
	err := first(deleted.Error, same(deleted.RowsAffected, int64(1)), a.db.Model(&Book{}).Count(&visible).Error, a.db.Unscoped().Model(&Book{}).Count(&all).Error,
		a.db.Unscoped().Model(&Book{}).Where("deleted_at IS NOT NULL").Count(&gone).Error, same([]int64{visible, all, gone}, []int64{2, 3, 1}))
	if err != nil {
		return err
	}
	back := a.db.Unscoped().Model(&Book{}).Where("title = ?", "Three").Update("deleted_at", nil)
	return first(back.Error, same(back.RowsAffected, int64(1)), a.db.Model(&Book{}).Count(&visible).Error, same(visible, int64(3)))
}

func (a *app) transactions() error {
	failure := errors.New("failure")
	err := a.db.Transaction(func(tx *gorm.DB) error {
		var book Book
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Where("title = ?", "Two").First(&book).Error; err != nil {
			return err
		}
		return first(tx.Create(&Tag{Name: "kept"}).Error, tx.Model(&book).Update("pages", 22).Error)
	})
	if err != nil {
		return err
	}
	err = a.db.Transaction(func(tx *gorm.DB) error { return first(tx.Create(&Tag{Name: "lost"}).Error, failure) })
	var names []string
	err = first(same(err, failure), a.db.Model(&Tag{}).Where("name IN ('kept', 'lost')").Pluck("name", &names).Error, same(names, []string{"kept"}))
	if err != nil {
		return err
	}
	repeatable := a.db.Transaction(func(tx *gorm.DB) error { return tx.Where("name = ?", "kept").Delete(&Tag{}).Error }, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	readOnly := a.db.Transaction(func(tx *gorm.DB) error {
		var count int64
		return first(tx.Model(&Tag{}).Count(&count).Error, same(count, int64(5)))
	}, &sql.TxOptions{ReadOnly: true})
	return first(repeatable, readOnly)
}

// errors checks that each error has the code that the server has sent.
func (a *app) errors() error {
	for name, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"foreign key": {a.db.Create(&Book{Title: "x", AuthorID: new(uint)}).Error, codes.FailedPrecondition},
		"check":       {a.db.Model(&Book{}).Where("title = ?", "Two").Update("pages", -1).Error, codes.OutOfRange},
		"not null":    {a.db.Exec("INSERT INTO authors (name) VALUES (NULL)").Error, codes.FailedPrecondition},
		"length":      {a.db.Create(&Author{Name: strings.Repeat("x", 101)}).Error, codes.FailedPrecondition},
		"text":        {a.db.Exec("SELEKT 1").Error, codes.InvalidArgument},
		"table":       {a.db.Table("nothing").Find(&[]Tag{}).Error, codes.InvalidArgument},
		"ddl":         {a.db.Exec("CREATE INDEX i ON authors(nothing)").Error, codes.InvalidArgument},
	} {
		var of *driverError
		if !errors.As(c.err, &of) || of.code != c.want {
			return fmt.Errorf("%s: got %v, want %s", name, c.err, c.want)
		}
	}
	return nil
}
