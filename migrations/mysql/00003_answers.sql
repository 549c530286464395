-- +goose Up
CREATE TABLE IF NOT EXISTS answers (
  purchase_id VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  remaining   BIGINT      NOT NULL,
  PRIMARY KEY (purchase_id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS answers;
