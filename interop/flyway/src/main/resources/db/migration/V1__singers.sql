CREATE TABLE singers (
  id INT64 NOT NULL,
  name STRING(100) NOT NULL,
  joined TIMESTAMP DEFAULT (CURRENT_TIMESTAMP()),
) PRIMARY KEY (id);

CREATE INDEX singers_by_name ON singers (name);
