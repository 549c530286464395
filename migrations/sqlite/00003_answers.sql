-- +goose Up
CREATE TABLE answers (
  purchase_id VARCHAR(96) NOT NULL,
  remaining   BIGINT      NOT NULL,
  PRIMARY KEY (purchase_id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE answers;
