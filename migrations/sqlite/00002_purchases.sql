-- +goose Up
CREATE TABLE purchases (
  purchase_id  VARCHAR(96) NOT NULL,
  sale_id      VARCHAR(64) NOT NULL,
  user_id      VARCHAR(64) NOT NULL,
  quantity     BIGINT      NOT NULL,
  price_cents  BIGINT      NOT NULL,
  fence        BIGINT      NOT NULL,
  status       VARCHAR(16) NOT NULL,
  reason       VARCHAR(32) NOT NULL,
  live         TINYINT     NULL,
  created_at   DATETIME    NOT NULL,
  persisted_at DATETIME    NOT NULL,
  PRIMARY KEY (purchase_id),
  CONSTRAINT purchases_quantity CHECK (quantity > 0)
) WITHOUT ROWID;
CREATE UNIQUE INDEX purchases_live ON purchases (sale_id, user_id, live);
CREATE INDEX purchases_status ON purchases (sale_id, status);

-- +goose Down
DROP TABLE purchases;
