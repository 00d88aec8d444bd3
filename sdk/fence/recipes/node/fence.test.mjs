// Run by `cargo test -p interlock-fence`, which starts PostgreSQL: FENCE_PG is the folder of its socket, and there is
// an empty database `node`, and a database `shared` whose fences the Rust crate has raised.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { connect } from './connection.mjs';
import { admit, forget, read, Refused, remember, TABLES, transaction } from './fence.mjs';

const POOL = 'pool/gpu-7';
const WRITERS = [1, 2, 3, 4, 5, 6, 7, 8];
const open = [];

async function client(database = 'node') {
  const connection = await connect(process.env.FENCE_PG, database, 'interlock');
  open.push(connection);
  return connection;
}

function effect(token, key = `any-${token}`, body = '') {
  const headers = ['Idempotency-Key', key, 'Interlock-Fence-Resource', POOL, 'Interlock-Fencing-Token', `${token}`];
  return read('PUT', '/pools/gpu-7', headers, body);
}

const ledger = async (db) => (await db.query('SELECT entries FROM ledger')).rows[0].entries;
const write = (db, seen, token) => db.query('UPDATE ledger SET entries = $1', [`${seen}${token};`]);

function run(db, one) {
  return transaction(db, async () => {
    const done = await admit(db, one);
    if (done) return done;
    await write(db, await ledger(db), one.token);
    return remember(db, one, 201, Buffer.from('{}'));
  });
}

let db;
before(async () => {
  db = await client();
  await db.query(`${TABLES} CREATE TABLE ledger (entries text);`);
});
beforeEach(() => db.query("DELETE FROM interlock_fences; DELETE FROM interlock_answers; DELETE FROM ledger; INSERT INTO ledger VALUES ('')"));
after(() => open.forEach((connection) => connection.end()));

test('outside of the transaction all updates but one are lost', async () => {
  const paused = [];
  for (const token of WRITERS) {
    const mine = await client();
    await transaction(mine, () => admit(mine, effect(token)));
    paused.push([mine, await ledger(mine), token]);
  }
  for (const writer of paused.reverse()) await write(...writer);
  assert.equal(await ledger(db), '1;');
});

test('inside the transaction no update is lost', async () => {
  const accepted = [];
  let begun = 0;
  let goOn;
  const othersWait = new Promise((resolve) => (goOn = resolve));
  const writers = [];
  for (const token of WRITERS) {
    const mine = await client();
    const writer = transaction(mine, async () => {
      await admit(mine, effect(token));
      begun += 1;
      if (token === 1) await othersWait;
      await write(mine, await ledger(mine), token);
      accepted.push(token);
    });
    writers.push(writer.catch((error) => assert.equal(error.status, 412)));
    while (begun === 0) await new Promise(setImmediate);
  }
  const waiting = `SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while ((await db.query(waiting)).rows[0].count !== `${WRITERS.length - 1}`);
  assert.equal(begun, 1);
  goOn();
  await Promise.all(writers);
  assert.equal(await ledger(db), accepted.map((token) => `${token};`).join(''));
  assert.equal(accepted.at(-1), WRITERS.at(-1));
});

test('late owners are refused, what was done is answered again, what is being done is not begun', async () => {
  await run(db, effect(5, 'e1', '4'));
  await run(db, effect(7, 'e2', '8'));
  const late = await run(db, effect(6, 'e3', '2')).catch((error) => error);
  assert.ok(late instanceof Refused);
  assert.deepEqual([late.status, late.problem.code], [412, 'fenced']);
  assert.equal(late.problem.detail, 'pool/gpu-7: expected a token of at least 7, got 6');
  assert.deepEqual(await run(db, effect(5, 'e1', '4')), { status: 201, body: Buffer.from('{}') });
  await assert.rejects(run(db, effect(5, 'e1', '9')), { status: 422 });
  const other = await client();
  await transaction(other, async () => {
    assert.equal(await admit(other, effect(8, 'e4')), null);
    await assert.rejects(run(db, effect(8, 'e4')), { status: 409 });
  });
  assert.equal(await ledger(db), '5;7;');
  assert.equal(await forget(db, 3600), 0);
  assert.equal(await forget(db, 0), 2);
  await assert.rejects(run(db, effect(7, 'e5')), { status: 412 });
});

test('over http', async (context) => {
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const one = async () => read(request.method, request.url, request.rawHeaders, Buffer.concat(chunks));
    const { status, body } = await one()
      .then((effect) => run(db, effect))
      .catch((no) => ({ status: no.status, body: JSON.stringify(no.problem) }));
    response.writeHead(status).end(body);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  context.after(() => server.close());
  const send = (...tokens) =>
    new Promise((done, failed) => {
      const headers = ['Host', 'receiver', 'Content-Length', '0', 'Idempotency-Key', tokens.join('-')];
      headers.push('Interlock-Fence-Resource', Buffer.from('pool/größe').toString('latin1'));
      for (const token of tokens) headers.push('Interlock-Fencing-Token', token);
      const { port } = server.address();
      const request = http.request({ port, host: '127.0.0.1', method: 'PUT', path: '/', headers, agent: false });
      request.on('response', (response) => response.resume().on('end', () => done(response.statusCode)));
      request.on('error', failed).end();
    });
  const heard = [await send('7'), await send('6'), await send('8'), await send('8', '9'), await send()];
  assert.deepEqual(heard, [201, 412, 201, 400, 400]);
  const { rows } = await db.query('SELECT resource, token FROM interlock_fences');
  assert.deepEqual(rows, [{ resource: 'pool/größe', token: '8' }]);
});

test('headers are read as in every language', () => {
  const cases = JSON.parse(readFileSync(new URL('../headers.json', import.meta.url)));
  assert.ok(cases.length > 20);
  for (const { name, headers, accept, refuse } of cases) {
    const raw = headers.flatMap(([header, value]) => [header, Buffer.from(value).toString('latin1')]);
    let [accepted, refused] = [];
    try {
      const { key, resource, token } = read('POST', '/', raw, '');
      accepted = { key, resource, token };
    } catch (error) {
      refused = { header: error.problem.subject, got: error.problem.got };
    }
    assert.deepEqual([accepted, refused], [accept, refuse], name);
  }
});

test('the digest is that of every language', () => {
  const headers = ['Idempotency-Key', 'e1', 'Interlock-Fence-Resource', POOL, 'Interlock-Fencing-Token', '5'];
  const { digest } = read('PUT', '/pools/a?dry=1', headers, '{"size":4}');
  assert.equal(digest.toString('hex'), '51012785f77a5df1ec3d1fdad4cbe7fa42bd42fb99cb877734080bd770e22988');
});

test('fences of the rust crate hold here', async () => {
  const shared = await client('shared');
  await assert.rejects(transaction(shared, () => admit(shared, effect(6, 'new'))), /at least 7, got 6/);
  const done = await transaction(shared, () => admit(shared, effect(6, 'done', '4')));
  assert.deepEqual(done, { status: 201, body: Buffer.from('{}') });
  await transaction(shared, async () => {
    assert.equal(await admit(shared, effect(8, 'here', '8')), null);
    await remember(shared, effect(8, 'here', '8'), 202, Buffer.from('[]'));
  });
});
