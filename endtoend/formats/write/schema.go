package main

// firstSchema creates tables with every type and every kind of constraint and index.
var firstSchema = []string{
	`CREATE TABLE Types (
		Id INT64 NOT NULL, B BOOL, I INT64, F32 FLOAT32, F64 FLOAT64, N NUMERIC, S STRING(MAX), Short STRING(10), Y BYTES(MAX),
		D DATE, T TIMESTAMP, J JSON, U UUID,
		Bools ARRAY<BOOL>, Ints ARRAY<INT64>, Floats32 ARRAY<FLOAT32>, Floats ARRAY<FLOAT64>, Numbers ARRAY<NUMERIC>, Strings ARRAY<STRING(MAX)>, Blobs ARRAY<BYTES(MAX)>,
		Days ARRAY<DATE>, Times ARRAY<TIMESTAMP>, Jsons ARRAY<JSON>, Uuids ARRAY<UUID>,
		Changed TIMESTAMP OPTIONS (allow_commit_timestamp = true)
	) PRIMARY KEY (Id DESC)`,
	`CREATE TABLE Keys (B BOOL, I INT64, F64 FLOAT64, N NUMERIC, S STRING(MAX), Y BYTES(MAX), D DATE, T TIMESTAMP, U UUID, V INT64)
		PRIMARY KEY (B, I DESC, F64, N DESC, S, Y DESC, D, T DESC, U)`,
	`CREATE TABLE Singers (
		SingerId INT64 NOT NULL, First STRING(100) NOT NULL, Last STRING(100) NOT NULL DEFAULT ('unknown'),
		Name STRING(MAX) AS (CONCAT(First, ' ', Last)) STORED, Initial STRING(MAX) AS (SUBSTR(First, 1, 1)),
		CONSTRAINT HasName CHECK (LENGTH(First) > 0)
	) PRIMARY KEY (SingerId)`,
	`CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX), Price NUMERIC)
		PRIMARY KEY (SingerId, AlbumId DESC), INTERLEAVE IN PARENT Singers ON DELETE CASCADE`,
	`CREATE TABLE Songs (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Track INT64 NOT NULL, Seconds INT64)
		PRIMARY KEY (SingerId, AlbumId DESC, Track), INTERLEAVE IN PARENT Albums ON DELETE NO ACTION`,
	`CREATE TABLE Concerts (Venue STRING(36) NOT NULL DEFAULT (GENERATE_UUID()), SingerId INT64, Day DATE,
		CONSTRAINT Performer FOREIGN KEY (SingerId) REFERENCES Singers (SingerId) ON DELETE CASCADE) PRIMARY KEY (Venue)`,
	`CREATE TABLE Sessions (Id STRING(MAX), Until TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Until, INTERVAL 30 DAY))`,
	`CREATE UNIQUE INDEX SingersByName ON Singers(Last, First DESC)`,
	`CREATE NULL_FILTERED INDEX AlbumsByTitle ON Albums(Title) STORING (Price)`,
	`CREATE INDEX SongsBySeconds ON Songs(SingerId, AlbumId DESC, Seconds DESC), INTERLEAVE IN Albums`,
	`ALTER DATABASE music SET OPTIONS (version_retention_period = '2h')`,
	`CREATE CHANGE STREAM Everything FOR ALL OPTIONS (retention_period = '7d')`,
	`CREATE CHANGE STREAM Names FOR Singers(First, Last)`,
}

// laterSchema changes tables that already have rows, and drops some objects.
var laterSchema = []string{
	`ALTER TABLE Singers ADD COLUMN Born DATE DEFAULT (DATE '1970-01-01')`,
	`ALTER TABLE Singers ADD COLUMN Gone STRING(MAX)`,
	`CREATE INDEX SingersByBorn ON Singers(Born) STORING (Name)`,
	`CREATE INDEX Dropped ON Albums(Price)`,
	`CREATE TABLE DroppedTable (K INT64) PRIMARY KEY (K)`,
	`ALTER TABLE Albums ADD COLUMN Cents INT64 AS (CAST(Price * 100 AS INT64)) STORED`,
	`ALTER TABLE Concerts ALTER COLUMN Day DATE NOT NULL`,
	`ALTER TABLE Singers ADD CONSTRAINT NotBefore CHECK (Born >= DATE '1900-01-01')`,
	`ALTER TABLE Singers DROP COLUMN Gone`,
	`DROP INDEX Dropped`,
	`DROP TABLE DroppedTable`,
}
