-- +goose Up
CREATE TABLE preloads (
  sale_id VARCHAR(64) NOT NULL,
  times   BIGINT      NOT NULL,
  PRIMARY KEY (sale_id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE preloads;
