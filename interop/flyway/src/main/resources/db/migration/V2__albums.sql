CREATE TABLE albums (
  id INT64 NOT NULL,
  album INT64 NOT NULL,
  title STRING(100),
  CONSTRAINT titled CHECK (title != ''),
) PRIMARY KEY (id, album), INTERLEAVE IN PARENT singers ON DELETE CASCADE;

CREATE TABLE concerts (
  concert INT64 NOT NULL,
  singer INT64,
  CONSTRAINT fk_concerts_singers FOREIGN KEY (singer) REFERENCES singers (id),
) PRIMARY KEY (concert);

CREATE VIEW album_titles SQL SECURITY INVOKER AS SELECT a.id, a.title FROM albums AS a;
