-- +goose Up
-- Nobody locks rows of SQLite, but the versions of both dialects have the same tables.
CREATE TABLE flashsale_locks (
  name  VARCHAR(160) NOT NULL,
  fence BIGINT       NOT NULL,
  PRIMARY KEY (name)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE flashsale_locks;
