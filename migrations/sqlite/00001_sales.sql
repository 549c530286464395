-- +goose Up
CREATE TABLE sales (
  id             VARCHAR(64)  NOT NULL,
  item_id        VARCHAR(64)  NOT NULL,
  title          VARCHAR(255) NOT NULL,
  price_cents    BIGINT       NOT NULL,
  stock          BIGINT       NOT NULL,
  remaining      BIGINT       NOT NULL,
  per_user_limit BIGINT       NOT NULL,
  variant        VARCHAR(32)  NOT NULL,
  fencing        BOOLEAN      NOT NULL,
  work_min_us    BIGINT       NOT NULL,
  work_max_us    BIGINT       NOT NULL,
  starts_at      DATETIME     NULL,
  ends_at        DATETIME     NULL,
  closed_at      DATETIME     NULL,
  PRIMARY KEY (id),
  CONSTRAINT sales_remaining CHECK (remaining >= 0 AND remaining <= stock)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE sales;
