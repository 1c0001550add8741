package main

import (
	"database/sql"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Member has every kind of relation that GORM supports: to one row, to many rows, to itself, many-to-many with another
// table and with itself, and to a table whose rows belong to owners of several kinds (polymorphic).
type Member struct {
	gorm.Model
	Name      string
	Born      *time.Time
	Card      *Card
	Desks     []Desk `gorm:"constraint:OnDelete:CASCADE"`
	Lamp      *Lamp  `gorm:"polymorphic:Owner"`
	ClubID    sql.NullInt64
	Club      Club
	MentorID  *uint
	Mentor    *Member
	Pupils    []Member   `gorm:"foreignKey:MentorID"`
	Languages []Language `gorm:"many2many:member_languages"`
	Friends   []*Member  `gorm:"many2many:member_friends"`
}

type Card struct {
	gorm.Model
	MemberID uint
	Number   string `gorm:"not null;index:,unique"`
	Kind     string `gorm:"size:20;not null;default:'plain'"`
	Limit    int64  `gorm:"default:18"`
	Code     string `gorm:"size:36;default:GENERATE_UUID()"`
}

// Desk is deleted together with its member.
type Desk struct {
	MemberID uint  `gorm:"primaryKey;autoIncrement:false"`
	Number   int64 `gorm:"primaryKey;autoIncrement:false"`
	Member   *Member
}

type Lamp struct {
	ID        uint
	Watts     int64
	OwnerID   int64
	OwnerType string
}

type Club struct {
	ID   int
	Name string
	Lamp *Lamp `gorm:"polymorphic:Owner"`
}

type Language struct {
	Code string `gorm:"primarykey"`
	Name string
}

func (a *app) relations() error {
	models := []any{&Member{}, &Card{}, &Desk{}, &Lamp{}, &Club{}, &Language{}}
	if err := a.db.AutoMigrate(models...); err != nil {
		return err
	}
	schema, err := a.ddl()
	if err := first(err, a.db.AutoMigrate(models...), a.expectSchema(schema)); err != nil {
		return err
	}
	ann := Member{Name: "Ann", Club: Club{Name: "chess"}, Mentor: &Member{Name: "Max"}, Languages: []Language{{Code: "de"}, {Code: "fr"}}, Friends: []*Member{{Name: "Bob"}}}
	if err := a.db.Create(&ann).Error; err != nil {
		return err
	}
	card := Card{MemberID: ann.ID, Number: "1"}
	err = first(a.db.Create(&card).Error, a.db.Create(&Lamp{Watts: 5, OwnerID: int64(ann.ID), OwnerType: "members"}).Error, a.db.Create(&Desk{MemberID: ann.ID, Number: 7}).Error,
		same([]any{card.Kind, card.Limit, len(card.Code)}, []any{"plain", int64(18), 36}))
	if err != nil {
		return err
	}
	var loaded, joined Member
	err = first(a.db.Preload(clause.Associations).Preload("Mentor.Pupils").First(&loaded, ann.ID).Error,
		a.db.Joins("Club").Joins("Mentor").InnerJoins("Card", a.db.Where(&Card{Number: "1"})).First(&joined, ann.ID).Error)
	if err != nil {
		return err
	}
	err = first(
		same([]any{loaded.Card.Number, len(loaded.Desks), loaded.Lamp.Watts, loaded.Club.Name, loaded.Mentor.Name, len(loaded.Mentor.Pupils), len(loaded.Languages), loaded.Friends[0].Name},
			[]any{"1", 1, int64(5), "chess", "Max", 1, 2, "Bob"}),
		same([]any{joined.Card.Number, joined.Club.Name, joined.Mentor.Name}, []any{"1", "chess", "Max"}))
	if err != nil {
		return err
	}
	var count int64
	var pairs []Member
	return first(
		a.db.Table("(?) AS m", a.db.Model(&Member{}).Select("name", "club_id")).Where("m.club_id IS NOT NULL").Count(&count).Error, same(count, int64(1)),
		a.db.Where("(name, mentor_id) IN ?", [][]any{{"Ann", *ann.MentorID}, {"Bob", 1}}).Find(&pairs).Error, same(len(pairs), 1),
		a.db.Model(&Card{}).Where("1 = 1").Update("limit", a.db.Model(&Desk{}).Select("COUNT(*)").Where("desks.member_id = cards.member_id")).Error,
		a.db.First(&card).Error, same(card.Limit, int64(1)),
		a.db.Model(&ann).Association("Friends").Clear(), same(a.db.Model(&ann).Association("Friends").Count(), int64(0)),
		a.db.Model(&ann).Association("Languages").Replace(&Language{Code: "it"}), same(a.db.Model(&ann).Association("Languages").Count(), int64(1)),
		a.db.Model(&ann).Updates(map[string]any{"born": nil, "club_id": nil}).Error,
		a.db.Unscoped().Delete(&card).Error, a.db.Model(&ann).Association("Languages").Clear(), a.db.Unscoped().Delete(&ann).Error,
		a.db.Model(&Desk{}).Count(&count).Error, same(count, int64(0)))
}
