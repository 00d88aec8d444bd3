// What a step asks for at its end or in its middle, as the host takes it.

import { count } from "./integer.js";
import { encode } from "./json.js";

/** A value that the host evaluates inside the transaction. */
export class From {
  constructor(source) {
    this.source = source;
  }
}

/** `from("now")`, `from("now+5m")`, `from("execution")`, `from("event.size")`: it cannot be stale. */
export function from(source) {
  return new From(source);
}

/** A value of a mutation, a comparison or a key. */
export function value(subject, given) {
  return given instanceof From ? { tag: "from", val: given.source } : { tag: "json", val: encode(subject, given) };
}

/** One change of one field. Made by the functions below. */
class Mutation {
  constructor(tag, val) {
    this.tag = tag;
    this.val = val;
  }
}

const assignment = (tag) => (field, to) => new Mutation(tag, { field, value: value(field, to) });

/** Puts the value at the path; objects on the way are made. */
export const set = assignment("set");

/** Adds a number; a missing field starts from 0. */
export const increment = assignment("increment");

/** Keeps the larger one. */
export const max = assignment("max");

/** Keeps the smaller one. */
export const min = assignment("min");

/** Takes the field away. */
export function remove(field) {
  return new Mutation("remove", field);
}

/** Adds to the end of a list, of which at most so many stay. */
export function append(field, item, limit) {
  return new Mutation("append", { field, value: value(field, item), limit: count(`the limit of ${field}`, limit) });
}

/** Mutations: a list of them, or `{ path: value }` to set. */
export function mutations(given) {
  if (given === undefined) return [];
  if (!Array.isArray(given)) return Object.entries(given).map(([field, to]) => set(field, to));
  for (const one of given) {
    if (!(one instanceof Mutation)) {
      throw new TypeError(`expected set(…), increment(…) or another mutation, got ${JSON.stringify(one)}`);
    }
  }
  return given;
}

/** A request for the next state. */
class Draft {
  constructor(state, content) {
    this.state = state;
    this.content = content;
  }
}

/** Begins a request for the next state: `to("ready", { data, outputs })`. */
export function to(state, content = {}) {
  return new Draft(state, content);
}

/** What `transition` takes of the host's. */
export function change(draft) {
  if (!(draft instanceof Draft)) {
    throw new TypeError(`transition: expected to("state", { … }), got ${JSON.stringify(draft)}`);
  }
  return { to: draft.state, ...checkpoint(draft.content) };
}

/** What `save` takes of the host's. */
export function checkpoint(content) {
  return {
    data: document("data", content),
    outputs: document("outputs", content),
    set: mutations(content.set),
    conditions: (content.conditions ?? []).map(condition),
  };
}

function document(name, content) {
  return Object.hasOwn(content, name) ? encode(name, content[name]) : undefined;
}

const STATUS = new Map([
  [true, "true"],
  [false, "false"],
]);

function condition({ type, status, reason = "", message = "" }) {
  return { type, status: STATUS.get(status) ?? status, reason, message };
}
