// Operations on rows and conditions of them, as the host takes them, of what a step gives.

import { mutations, value } from "./draft.js";
import { groups } from "./filter.js";
import { count } from "./integer.js";
import { encode } from "./json.js";

const key = (given) => value("key", given);
const limit = (given) => (given === undefined ? undefined : count("limit", given));

/** What each operation asks, by its name in the contract. */
export const asks = {
  get: (of, { fields = [] } = {}) => ({ key: key(of), fields }),
  put: (of, row, { fill, ifAbsent = false, ifStill, fields = [] } = {}) => ({
    key: key(of),
    value: encode("value", row),
    fill: mutations(fill),
    expect: expected(ifAbsent, ifStill),
    fields,
  }),
  update: (of, { where, set, must = false, fields = [] }) => ({
    key: key(of),
    where: groups(where),
    set: mutations(set),
    fields,
    must,
  }),
  upsert: (of, insert, { fill, set, fields = [] } = {}) => ({
    key: key(of),
    insert: encode("insert", insert),
    fill: mutations(fill),
    set: mutations(set),
    fields,
  }),
  claim: ({ where, set, order: by, limit: most, andDelete = false, must = false, fields = [] } = {}) => ({
    where: where && groups(where),
    set: set && mutations(set),
    order: order(by),
    limit: limit(most),
    delete: andDelete,
    fields,
    must,
  }),
  delete: (of, { where, must = false } = {}) => ({ key: key(of), where: groups(where), must }),
};

/** What a query asks. */
export function querying({ where, order: by, limit: most, after, fields = [] } = {}) {
  return { where: groups(where), order: order(by), limit: limit(most), after, fields };
}

function expected(ifAbsent, ifStill) {
  if (ifAbsent) return { tag: "absent" };
  return ifStill && { tag: "etag", val: ifStill.etag };
}

/** `{ by: "created" | "updated" | { index }, descending }`. */
function order(given) {
  if (given === undefined) return undefined;
  const { by = "created", descending = false } = given;
  return { by: typeof by === "string" ? { tag: by } : { tag: "index", val: by.index }, descending };
}

/** One of several operations, or one that is staged. */
export class Part {
  constructor(table, tag, val) {
    this.operation = { table, what: { tag, val } };
  }
}

/** A condition on something else. */
export class Condition {
  constructor(tag, val) {
    this.requirement = { tag, val };
  }
}

export function rowCondition(table, of, { absent = false, where } = {}) {
  return new Condition("row", { table, key: key(of), present: !absent, where: groups(where) });
}

export function entityCondition(entity, { states = [], where } = {}) {
  return new Condition("entity", { entity, states, where: groups(where) });
}
