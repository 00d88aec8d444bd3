// The entity as an attempt sees it: reading, and asking for the next state.

import * as fencing from "interlock:step/fencing@0.1.0";
import * as leases from "interlock:step/lease@0.1.0";
import { change, checkpoint } from "./draft.js";
import { forget } from "./environment.js";
import { Failure } from "./failure.js";
import { asked } from "./host.js";
import { fromHost, milliseconds } from "./integer.js";
import { decode } from "./json.js";
import { Lease } from "./lease.js";

/** The handle behind an entity, for the modules of this package alone. */
export const handle = Symbol("handle");

/** The entity of this attempt: a snapshot to read, and the right to ask for its next state. */
export class Entity {
  constructor(host, event) {
    this[handle] = host;
    this.event = new Event(event);
  }

  get id() {
    return this[handle].id();
  }

  get key() {
    return this[handle].key();
  }

  get execution() {
    return this[handle].execution();
  }

  get attempt() {
    return this[handle].attempt();
  }

  get state() {
    return this[handle].state();
  }

  get version() {
    return fromHost(this[handle].version());
  }

  get cancelRequested() {
    return this[handle].cancelRequested();
  }

  get timeLeftMs() {
    return fromHost(this[handle].deadlineMs());
  }

  get token() {
    return fromHost(fencing.token(this[handle]));
  }

  stillHolds() {
    return fencing.stillHolds(this[handle]);
  }

  data(check) {
    return read("data", this[handle].data(), check);
  }

  desired(check) {
    return read("desired", this[handle].desired(), check);
  }

  outputs(check) {
    return read("outputs", this[handle].outputs(), check);
  }

  reload() {
    asked(() => this[handle].reload());
  }

  save(content) {
    const asks = checkpoint(content);
    asked(() => this[handle].save(asks));
    forget(); // what a retry would begin from has changed
  }

  transition(draft) {
    const asks = change(draft);
    asked(() => this[handle].transition(asks));
    return DONE;
  }

  lease(name, ttlMs) {
    const ttl = ttlMs === undefined ? undefined : milliseconds("ttlMs", ttlMs);
    return new Lease(asked(() => leases.acquire(this[handle], name, ttl)));
  }
}

/** The types say that only a transition gives one; whether there was one is the host's to judge. */
const DONE = Object.freeze({});

/** What entered the visit. */
class Event {
  #payload;

  constructor({ id, kind, name, payload, atMs }) {
    Object.assign(this, { id, kind, name, atMs: fromHost(atMs) });
    this.#payload = payload;
  }

  payload(check) {
    return read("payload", this.#payload, check);
  }
}

/** A document as a value, and as the step's own check has it; none is undefined. */
export function read(document, text, check) {
  return text === undefined ? undefined : checked(document, decode(text), check);
}

/** What the step's own check refuses is a permanent failure. */
export function checked(document, value, check) {
  if (check === undefined) return value;
  try {
    return check(value);
  } catch (cause) {
    const reason = `${document} is not what the step expects: ${cause?.message ?? cause}`;
    throw Failure.permanent(reason, { code: `${document}-shape`, cause });
  }
}
