// For the test alone: as much of PostgreSQL's protocol (version 3, a socket, no password) as stands in for a
// connection of `pg`, so that the test needs no package. Same shapes: `query(text, values)` gives `{ rows, rowCount }`,
// bigint is a string, bytea a Buffer.

import net from 'node:net';

export async function connect(folder, database, user) {
  const socket = net.connect(`${folder}/.s.PGSQL.5432`);
  const connection = new Connection(socket);
  const settings = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  await connection.ask(Buffer.concat([int32(settings.length + 8), int32(196608), settings]));
  return connection;
}

class Connection {
  #socket;
  #bytes = Buffer.alloc(0);
  #answer;
  #last = Promise.resolve();

  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', (error) => this.#answer?.failed(error));
  }

  query(text, values = []) {
    const bytes = values.length ? extended(text, values) : message('Q', `${text}\0`);
    this.#last = this.#last.catch(() => {}).then(() => this.ask(bytes));
    return this.#last;
  }

  end() {
    this.#socket.end(message('X'));
  }

  ask(bytes) {
    return new Promise((done, failed) => {
      this.#answer = { done, failed, rows: [], rowCount: 0, columns: [], error: null };
      this.#socket.write(bytes);
    });
  }

  #read(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (this.#bytes.length >= 5 && this.#bytes.length > this.#bytes.readInt32BE(1)) {
      const end = this.#bytes.readInt32BE(1) + 1;
      this.#take(String.fromCharCode(this.#bytes[0]), this.#bytes.subarray(5, end));
      this.#bytes = this.#bytes.subarray(end);
    }
  }

  #take(kind, body) {
    const answer = this.#answer;
    if (kind === 'T') answer.columns = columns(body);
    if (kind === 'D') answer.rows.push(row(body, answer.columns));
    if (kind === 'C') answer.rowCount = Number(body.toString('utf8', 0, body.length - 1).split(' ').pop());
    if (kind === 'E') answer.error = new Error(body.toString('utf8').replaceAll('\0', ' '));
    if (kind !== 'Z') return;
    if (answer.error) answer.failed(answer.error);
    else answer.done({ rows: answer.rows, rowCount: answer.rowCount });
  }
}

function extended(text, values) {
  const coded = values.map((value) => (Buffer.isBuffer(value) ? value : Buffer.from(String(value))));
  const formats = values.map((value) => int16(Buffer.isBuffer(value) ? 1 : 0));
  const parts = coded.flatMap((value) => [int32(value.length), value]);
  return Buffer.concat([
    message('P', `\0${text}\0`, int16(0)),
    message('B', '\0\0', int16(values.length), ...formats, int16(values.length), ...parts, int16(0)),
    message('D', 'P\0'),
    message('E', '\0', int32(0)),
    message('S'),
  ]);
}

function columns(body) {
  const found = [];
  for (let at = 2; at < body.length; ) {
    const end = body.indexOf(0, at);
    found.push({ name: body.toString('utf8', at, end), type: body.readInt32BE(end + 7) });
    at = end + 19;
  }
  return found;
}

function row(body, names) {
  let at = 2;
  const fields = names.map(({ name, type }) => {
    const length = body.readInt32BE(at);
    const text = length < 0 ? null : body.toString('utf8', at + 4, at + 4 + length);
    at += 4 + Math.max(length, 0);
    return [name, decoded(type, text)];
  });
  return Object.fromEntries(fields);
}

function decoded(type, text) {
  if (text === null) return null;
  if (type === 16) return text === 't';
  if (type === 17) return Buffer.from(text.slice(2), 'hex');
  return type === 23 ? Number(text) : text;
}

function message(kind, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from(kind), int32(body.length + 4), body]);
}

function int16(value) {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
