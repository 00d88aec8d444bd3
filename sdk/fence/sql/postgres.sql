-- The highest fencing token that was accepted, per resource. Never delete a row while the resource can still be
-- written: a highest that was forgotten lets a late owner in.
CREATE TABLE IF NOT EXISTS interlock_fences (
    resource text COLLATE "C" PRIMARY KEY,
    token    bigint NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
);

-- What was answered, per idempotency key. A row may go once the sender no longer asks again.
CREATE TABLE IF NOT EXISTS interlock_answers (
    key    text COLLATE "C" PRIMARY KEY,
    digest bytea NOT NULL,
    status integer NOT NULL CHECK (status BETWEEN 100 AND 999),
    body   bytea NOT NULL,
    at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS interlock_answers_at ON interlock_answers (at);
