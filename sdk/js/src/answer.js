// What the host answers about rows, as a step reads it: documents as values, an answer of two sorts as one object.

import { fromHost } from "./integer.js";
import { read } from "./entity.js";

/** A row as it stands behind the request. */
export class Row {
  #text;

  constructor({ key, value, etag, createdMs, updatedMs, claims, claimedBy }) {
    this.#text = value;
    Object.assign(this, { key, etag, createdMs: fromHost(createdMs), updatedMs: fromHost(updatedMs), claims, claimedBy });
  }

  value(check) {
    return read("row", this.#text, check);
  }
}

const row = (given) => new Row(given);

/** How each answer reads, by its name in the contract. */
export const answers = {
  got: ({ row: given }) => given && row(given),
  written: ({ inserted, row: given }) => ({ inserted, row: row(given) }),
  updated: ({ tag, val }) => (tag === "changed" ? { changed: true, row: row(val) } : { changed: false, miss: val }),
  claimed: ({ rows, more, lost }) => ({ rows: rows.map(row), more, lost }),
  deleted: ({ tag, val }) => (tag === "gone" ? { gone: true, key: val } : { gone: false, miss: val }),
  page: ({ rows, next }) => ({ rows: rows.map(row), next }),
};

const SORTS = {
  got: answers.got,
  put: answers.written,
  updated: answers.updated,
  upserted: answers.written,
  claimed: answers.claimed,
  deleted: answers.deleted,
};

/** One of several answers. */
export function answer({ tag, val }) {
  return SORTS[tag](val);
}
