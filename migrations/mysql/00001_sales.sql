-- +goose Up
CREATE TABLE IF NOT EXISTS sales (
  id             VARCHAR(64)  CHARACTER SET ascii   COLLATE ascii_bin   NOT NULL,
  item_id        VARCHAR(64)  CHARACTER SET ascii   COLLATE ascii_bin   NOT NULL,
  title          VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  price_cents    BIGINT       NOT NULL,
  stock          BIGINT       NOT NULL,
  remaining      BIGINT       NOT NULL,
  per_user_limit BIGINT       NOT NULL,
  variant        VARCHAR(32)  CHARACTER SET ascii   COLLATE ascii_bin   NOT NULL,
  fencing        BOOLEAN      NOT NULL,
  work_min_us    BIGINT       NOT NULL,
  work_max_us    BIGINT       NOT NULL,
  starts_at      DATETIME(6)  NULL,
  ends_at        DATETIME(6)  NULL,
  closed_at      DATETIME(6)  NULL,
  PRIMARY KEY (id),
  CONSTRAINT sales_remaining CHECK (remaining >= 0 AND remaining <= stock)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE IF EXISTS sales;
