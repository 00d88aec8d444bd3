// Tables: rows that entities and clients share. `rows.d.ts` says each word.

import * as rows from "interlock:step/rows@0.1.0";
import { answer, answers as as } from "../src/answer.js";
import { handle } from "../src/entity.js";
import { asked } from "../src/host.js";
import { asks, Condition, entityCondition, Part, querying, rowCondition } from "../src/operation.js";

export { field } from "../src/filter.js";

export function table(entity, name) {
  return new Table(entity, name);
}

class Table {
  #entity;
  #name;

  constructor(entity, name) {
    this.#entity = entity;
    this.#name = name;
    this.part = parts(name);
    this.staged = staged(entity, this.part);
  }

  get(key, options) {
    return as.got(this.#ask((host) => rows.get(host, this.#name, asks.get(key, options))));
  }

  query(options) {
    return as.page(this.#ask((host) => rows.query(host, this.#name, querying(options))));
  }

  put(key, value, options) {
    return as.written(this.#ask((host) => rows.put(host, this.#name, asks.put(key, value, options), options?.op)));
  }

  update(key, options) {
    return as.updated(this.#ask((host) => rows.update(host, this.#name, asks.update(key, options), options.op)));
  }

  upsert(key, insert, options) {
    return as.written(this.#ask((host) => rows.upsert(host, this.#name, asks.upsert(key, insert, options), options?.op)));
  }

  claim(options) {
    return as.claimed(this.#ask((host) => rows.claim(host, this.#name, asks.claim(options), options?.op)));
  }

  delete(key, options) {
    return as.deleted(this.#ask((host) => rows.delete(host, this.#name, asks.delete(key, options), options?.op)));
  }

  #ask(ask) {
    return asked(() => ask(this.#entity[handle]));
  }
}

/** Each operation as a part of a transaction. */
function parts(name) {
  const part = (sort) => (...given) => new Part(name, sort, asks[sort](...given));
  const operations = Object.fromEntries(Object.keys(asks).map((sort) => [sort, part(sort)]));
  return { ...operations, require: (key, options) => rowCondition(name, key, options) };
}

/** Each part, staged for the next commit. */
function staged(entity, parts) {
  const stages = (make) => (...given) => stage(entity, make(...given));
  return Object.fromEntries(Object.entries(parts).map(([sort, make]) => [sort, stages(make)]));
}

function stage(entity, part) {
  if (part instanceof Part) {
    return asked(() => rows.stage(entity[handle], part.operation));
  }
  const { tag, val } = part.requirement;
  const require = tag === "row" ? rows.requireRow : rows.requireEntity;
  return asked(() => require(entity[handle], val));
}

export function requireEntity(entity, id, options) {
  stage(entity, entityCondition(id, options));
}

export { entityCondition };

export function transact(entity, all, { op } = {}) {
  for (const one of all) {
    if (!(one instanceof Part || one instanceof Condition)) {
      throw new TypeError(`transact: expected parts, as table.part.update(…) makes them, got ${JSON.stringify(one)}`);
    }
  }
  const operations = all.filter((one) => one instanceof Part).map((one) => one.operation);
  const requirements = all.filter((one) => one instanceof Condition).map((one) => one.requirement);
  return asked(() => rows.transact(entity[handle], operations, requirements, op)).map(answer);
}

export function answers(entity) {
  return rows.answers(entity[handle]).map(answer);
}
