-- The highest fencing token that was accepted, per resource. Never delete a row while the resource can still be
-- written: a highest that was forgotten lets a late owner in.
CREATE TABLE IF NOT EXISTS interlock_fences (
    resource TEXT PRIMARY KEY NOT NULL,
    token    INTEGER NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
) STRICT, WITHOUT ROWID;

-- What was answered, per idempotency key. A row may go once the sender no longer asks again.
CREATE TABLE IF NOT EXISTS interlock_answers (
    key    TEXT PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL,
    status INTEGER NOT NULL CHECK (status BETWEEN 100 AND 999),
    body   BLOB NOT NULL,
    at     INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;
CREATE INDEX IF NOT EXISTS interlock_answers_at ON interlock_answers (at);
