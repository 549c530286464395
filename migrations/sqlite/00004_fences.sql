-- +goose Up
CREATE TABLE fences (
  sale_id    VARCHAR(64) NOT NULL,
  last_fence BIGINT      NOT NULL,
  PRIMARY KEY (sale_id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE fences;
