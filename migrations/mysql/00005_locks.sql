-- +goose Up
CREATE TABLE IF NOT EXISTS flashsale_locks (
  name  VARCHAR(160) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  fence BIGINT       NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS flashsale_locks;
