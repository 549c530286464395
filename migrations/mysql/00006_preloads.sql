-- +goose Up
CREATE TABLE IF NOT EXISTS preloads (
  sale_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  times   BIGINT      NOT NULL,
  PRIMARY KEY (sale_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS preloads;
