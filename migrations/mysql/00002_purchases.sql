-- +goose Up
CREATE TABLE IF NOT EXISTS purchases (
  purchase_id  VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sale_id      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  quantity     BIGINT      NOT NULL,
  price_cents  BIGINT      NOT NULL,
  fence        BIGINT      NOT NULL,
  status       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  live         TINYINT     NULL,
  created_at   DATETIME(6) NOT NULL,
  persisted_at DATETIME(6) NOT NULL,
  PRIMARY KEY (purchase_id),
  UNIQUE KEY purchases_live (sale_id, user_id, live),
  KEY purchases_status (sale_id, status),
  CONSTRAINT purchases_quantity CHECK (quantity > 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS purchases;
