// The receiver's side of fencing on PostgreSQL, for a connection of `pg` (node-postgres) and nothing else.
//
// A recipe: copy it, and put TABLES among your migrations. One request is one transaction:
//
//     const effect = read(request.method, request.url, request.rawHeaders, body); // as node:http has them
//     const answer = await transaction(client, async () => {
//       const done = await admit(client, effect); // first: what was read before it may be out of date
//       if (done) return done;
//       await client.query('UPDATE ...');
//       return remember(client, effect, 200, Buffer.from('{}'));
//     });
//
// What is refused is thrown as Refused, which rolls the transaction back; answer with its status and problem.

import { createHash } from 'node:crypto';

export const TABLES = `
CREATE TABLE IF NOT EXISTS interlock_fences (
    resource text COLLATE "C" PRIMARY KEY,
    token    bigint NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
);
CREATE TABLE IF NOT EXISTS interlock_answers (
    key    text COLLATE "C" PRIMARY KEY,
    digest bytea NOT NULL,
    status integer NOT NULL CHECK (status BETWEEN 100 AND 999),
    body   bytea NOT NULL,
    at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS interlock_answers_at ON interlock_answers (at);`;

/** A "no" to be sent: `status`, and `problem` as JSON of the type application/problem+json. */
export class Refused extends Error {
  constructor(status, code, title, subject, expected, got, retryable = false) {
    const detail = `${subject}: expected ${expected}, got ${got}`;
    super(`${code}: ${detail}`);
    this.status = status;
    this.problem = { type: `urn:interlock:${code}`, title, status, code, detail, subject, expected, got, retryable };
  }
}

/** The effect that a request delivers. `rawHeaders`: names and values by turns, as node:http has them. */
export function read(method, target, rawHeaders, body) {
  return {
    key: text(rawHeaders, 'idempotency-key'),
    resource: text(rawHeaders, 'interlock-fence-resource'),
    token: number(rawHeaders, 'interlock-fencing-token'),
    digest: createHash('sha256').update(`${method} ${target}\n`).update(body).digest(),
  };
}

/** Everything or nothing. `client`: one connection, not a pool. */
export async function transaction(client, work) {
  await client.query('BEGIN');
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

/** Null: run it in this transaction. Otherwise it was done: the status and body to give again. */
export async function admit(client, { key, resource, token, digest }) {
  // The lock first, by itself: the next statement has to see what was committed until it was free.
  const claim = await client.query('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 5291294591267139427)) AS mine', [key]);
  if (!claim.rows[0].mine) {
    const expected = 'no delivery of this effect in work';
    throw new Refused(409, 'busy', 'The same effect is being worked on', key, expected, 'one that is', true);
  }
  const answered = await client.query('SELECT digest, status, body FROM interlock_answers WHERE key = $1', [key]);
  if (answered.rows.length > 0) {
    const { digest: first, status, body } = answered.rows[0];
    if (digest.equals(first)) return { status, body };
    const title = 'The idempotency key was used for another request';
    throw new Refused(422, 'id_reused', title, key, 'the request that this key was first used for', 'another one');
  }
  const accepted = await client.query(
    `INSERT INTO interlock_fences AS fence (resource, token) VALUES ($1, $2)
     ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
     RETURNING token`,
    [resource, token],
  );
  if (accepted.rows.length > 0) return null;
  const highest = await client.query('SELECT token FROM interlock_fences WHERE resource = $1', [resource]);
  const expected = `a token of at least ${highest.rows[0].token}`;
  throw new Refused(412, 'fenced', 'Somebody else may write now', resource, expected, String(token));
}

/** What is answered to an effect that `admit` let run; gives it back. */
export async function remember(client, { key, digest }, status, body) {
  const insert = 'INSERT INTO interlock_answers (key, digest, status, body) VALUES ($1, $2, $3, $4)';
  await client.query(insert, [key, digest, status, body]);
  return { status, body };
}

/** Deletes the answers older than this many seconds: more than a sender asks again. Fences are never deleted. */
export async function forget(client, olderThanSeconds) {
  const old = 'DELETE FROM interlock_answers WHERE at <= now() - make_interval(secs => $1)';
  return (await client.query(old, [olderThanSeconds])).rowCount;
}

function only(rawHeaders, name, expected) {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1].toLowerCase() === name);
  if (values.length !== 1) throw bad(name, expected, values.length ? `${values.length} of them` : 'none');
  return Buffer.from(values[0], 'latin1');
}

function text(rawHeaders, name) {
  const expected = '1 to 512 bytes of UTF-8 without control characters';
  const value = only(rawHeaders, name, expected);
  const decoded = value.toString('utf8');
  const good = value.length >= 1 && value.length <= 512 && Buffer.from(decoded).equals(value) && !/\p{Cc}/u.test(decoded);
  if (!good) throw bad(name, expected, quoted(value));
  return decoded;
}

function number(rawHeaders, name) {
  const expected = 'a decimal integer below 2^53';
  const value = only(rawHeaders, name, expected);
  const decoded = value.toString('latin1');
  const good = /^(0|[1-9][0-9]{0,15})$/.test(decoded) && Number.isSafeInteger(Number(decoded));
  if (!good) throw bad(name, expected, quoted(value));
  return Number(decoded);
}

const quoted = (value) => `"${value.subarray(0, 80).toString('utf8')}"`;
const bad = (name, expected, got) => new Refused(400, 'invalid', 'The request itself is wrong', name, expected, got);
