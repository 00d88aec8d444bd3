"""The receiver's side of fencing on SQLite, with the standard library alone (SQLite 3.38 or later).

A recipe: copy it, and put TABLES among your migrations. One request is one transaction:

    effect = fence.read(self.command, self.path, self.headers.items(), body)  # as http.server has them
    with fence.transaction(db):
        answer = fence.admit(db, effect)  # first: what was read before it may be out of date
        if answer is None:
            db.execute("UPDATE ...")
            answer = (200, b"{}")
            fence.remember(db, effect, *answer)

What is refused is raised as Refused, which rolls the transaction back; answer with its status and problem.
"""

import hashlib
import re
from contextlib import contextmanager
from dataclasses import dataclass

TABLES = """
CREATE TABLE IF NOT EXISTS interlock_fences (
    resource TEXT PRIMARY KEY NOT NULL,
    token    INTEGER NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS interlock_answers (
    key    TEXT PRIMARY KEY NOT NULL,
    digest BLOB NOT NULL,
    status INTEGER NOT NULL CHECK (status BETWEEN 100 AND 999),
    body   BLOB NOT NULL,
    at     INTEGER NOT NULL DEFAULT (unixepoch())
) STRICT;
CREATE INDEX IF NOT EXISTS interlock_answers_at ON interlock_answers (at);
"""

KEY, RESOURCE, TOKEN = "idempotency-key", "interlock-fence-resource", "interlock-fencing-token"


@dataclass(frozen=True)
class Effect:
    key: str
    resource: str
    token: int
    digest: bytes


class Refused(Exception):
    """A "no" to be sent: `status`, and `problem` as JSON of the type application/problem+json."""

    def __init__(self, status, code, title, subject, expected, got):
        super().__init__(f"{code}: {subject}: expected {expected}, got {got}")
        self.status = status
        self.problem = {
            "type": f"urn:interlock:{code}", "title": title, "status": status, "code": code,
            "detail": f"{subject}: expected {expected}, got {got}",
            "subject": subject, "expected": expected, "got": got, "retryable": False,
        }


def read(method, target, headers, body):
    """The effect that a request delivers. `headers`: pairs, their text as latin-1, as http.server and WSGI have it."""
    headers = [(name.lower(), value.encode("latin-1")) for name, value in headers]
    return Effect(
        key=_text(headers, KEY),
        resource=_text(headers, RESOURCE),
        token=_number(headers, TOKEN),
        digest=hashlib.sha256(f"{method} {target}\n".encode() + body).digest(),
    )


@contextmanager
def transaction(db):
    """The one writer from its start; everything or nothing. The connection has to have `isolation_level=None`."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def admit(db, effect):
    """None: run it in this transaction. Otherwise it was done: the status and body to give again."""
    if not db.in_transaction:
        raise RuntimeError("expected the transaction that will write, got none: between two, updates get lost")
    answered = db.execute("SELECT digest, status, body FROM interlock_answers WHERE key = ?", (effect.key,)).fetchone()
    if answered is None:
        return _raise_highest(db, effect)
    if answered[0] != effect.digest:
        raise Refused(422, "id_reused", "The idempotency key was used for another request", effect.key,
                      "the request that this key was first used for", "another one")
    return answered[1:]


def remember(db, effect, status, body):
    """What is answered to an effect that `admit` let run."""
    db.execute("INSERT INTO interlock_answers (key, digest, status, body) VALUES (?, ?, ?, ?)",
               (effect.key, effect.digest, status, body))


def forget(db, older_than_s):
    """Deletes the answers older than this many seconds: more than a sender asks again. Fences are never deleted."""
    return db.execute("DELETE FROM interlock_answers WHERE at <= unixepoch() - ?", (older_than_s,)).rowcount


def _raise_highest(db, effect):
    accepted = db.execute(
        "INSERT INTO interlock_fences AS fence (resource, token) VALUES (?, ?)"
        " ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token"
        " RETURNING token", (effect.resource, effect.token)).fetchall()
    if not accepted:
        highest, = db.execute("SELECT token FROM interlock_fences WHERE resource = ?", (effect.resource,)).fetchone()
        raise Refused(412, "fenced", "Somebody else may write now", effect.resource,
                      f"a token of at least {highest}", str(effect.token))


def _only(headers, name, expected):
    values = [value for other, value in headers if other == name]
    if len(values) != 1:
        raise _bad(name, expected, f"{len(values)} of them" if values else "none")
    return values[0]


def _text(headers, name):
    expected = "1 to 512 bytes of UTF-8 without control characters"
    value = _only(headers, name, expected)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise _bad(name, expected, _quoted(value)) from None
    if not 1 <= len(value) <= 512 or re.search(r"[\x00-\x1f\x7f-\x9f]", text):
        raise _bad(name, expected, _quoted(value))
    return text


def _number(headers, name):
    expected = "a decimal integer below 2^53"
    value = _only(headers, name, expected)
    if not re.fullmatch(rb"0|[1-9][0-9]{0,15}", value) or int(value) >= 2**53:
        raise _bad(name, expected, _quoted(value))
    return int(value)


def _quoted(value):
    return '"' + value[:80].decode(errors="replace") + '"'


def _bad(name, expected, got):
    return Refused(400, "invalid", "The request itself is wrong", name, expected, got)
