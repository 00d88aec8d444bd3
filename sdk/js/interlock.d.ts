/// <reference path="./globals.d.ts" />

/**
 * For step authors: a step is one function on typed data that ends by asking for a transition.
 *
 * ```ts
 * import { Failure, steps, to, type Entity } from "interlock";
 *
 * type Data = { size: number; target: number };
 *
 * function resize(pool: Entity<Data>) {
 *   const data = pool.data();
 *   if (data.target > 64) throw Failure.permanent("no pool has more than 64 nodes", { code: "too-large" });
 *   return pool.transition(to("ready", { data: { ...data, size: data.target } }));
 * }
 *
 * export default steps({ resize });
 * ```
 *
 * The host owns the entity's state. A step reads a snapshot of it, does its work and asks; the host decides inside one
 * transaction. `Done` comes only from an accepted transition, so a step that forgets to ask for one has no right type.
 *
 * A no is thrown as a `Rejection`. One that nobody catches ends the attempt: retryable becomes a retry, the rest is
 * permanent. A step runs at least once and its accepted transition happens exactly once: whatever it does outside must
 * bear repetition, and should carry `entity.token`.
 */

/** An integer that the host counts in 64 bits: a number where that is exact, else a BigInt. */
export type Integer = number | bigint;

/**
 * Makes these functions the steps of the component. `checkQuota` and `check_quota` are the step `check-quota` of the
 * manifest. The component's module exports it as its default.
 */
export function steps(functions: Record<string, Step>): Steps;

/** A step. Its entity's documents are of the types that it says. */
export type Step = (entity: Entity<any, any, any, any>) => Done | Promise<Done>;

declare const made: unique symbol;

/** Made by `steps`. */
export interface Steps {
  readonly [made]: "steps";
}

/** The proof that a transition was accepted. Only `Entity.transition` makes one. */
export interface Done {
  readonly [made]: "done";
}

/** Any entity, whatever its documents are. */
export type AnyEntity = Entity<any, any, any, any>;

/** Judges a document, or throws: `pool.data(schema.parse)`. What it throws is a permanent failure, `data-shape`. */
export type Check<T> = (document: unknown) => T;

/** The entity of this attempt: a snapshot to read, and the right to ask for its next state. */
export interface Entity<Data = unknown, Desired = unknown, Outputs = unknown, Payload = unknown> {
  /** `machine/key`. */
  readonly id: string;
  /** The key alone. */
  readonly key: string;
  /** Id of the execution that holds the entity, the same over all its steps and attempts. */
  readonly execution: string;
  /** Which try of this visit this is, from 1. */
  readonly attempt: number;
  /** Name of the state the entity is in. */
  readonly state: string;
  /** How many changes of this entity were accepted. To read and to show. */
  readonly version: Integer;
  /** What entered the visit: the same for every attempt of it. */
  readonly event: Event<Payload>;
  /** Whether somebody asked for this execution to be cancelled. The step decides where to stop safely. */
  readonly cancelRequested: boolean;
  /** Milliseconds left before the host ends this attempt. */
  readonly timeLeftMs: Integer;
  /** The fencing token of this attempt, to carry outside: higher than that of any attempt before. */
  readonly token: number;

  /** Whether this attempt is still the open one. True is the answer of one moment: send the token along. */
  stillHolds(): boolean;

  /** What the steps remember, read anew at each call; undefined where the machine has no default and nobody wrote any. */
  data(): Data;
  data<T>(check: Check<T>): T;
  /** What clients want; undefined before the first apply. */
  desired(): Desired | undefined;
  desired<T>(check: Check<T>): T | undefined;
  /** What steps promised to clients; undefined before the first. */
  outputs(): Outputs | undefined;
  outputs<T>(check: Check<T>): T | undefined;

  /** Reads the entity again, after a `conflict`. Rejections: fenced, spent, limit, unavailable. */
  reload(): void;

  /**
   * Puts a checkpoint on record: a later attempt of this visit begins from here.
   * Rejections: fenced, spent, conflict, guard, denied, invalid, limit, unavailable.
   */
  save(content: Content<Data, Outputs>): void;

  /**
   * Asks for the next state: `pool.transition(to("ready", { data }))`. Accepted means durable, and this attempt is over:
   * return what it returns. One is accepted per attempt.
   * Rejections: fenced, spent, conflict, not-allowed, guard, denied, invalid, limit, unavailable. Nothing has changed
   * then, and the step may ask for something else.
   */
  transition(draft: Draft<Data, Outputs>): Done;

  /**
   * Takes a lease for this execution, for as long as the machine declares or this many milliseconds; never waits. One
   * that it has is renewed and keeps its token.
   * Rejections: `not-found` for one that the machine was not granted, `busy` with who has it, fenced, spent, invalid,
   * limit, unavailable.
   */
  lease(name: string, ttlMs?: Integer): Lease;
}

/** What entered the visit. */
export interface Event<Payload = unknown> {
  /** Unique per entity; the client's own id where it sent one. */
  readonly id: string;
  readonly kind: EventKind;
  /** The declared name of a signal or timer; for other kinds what it is about. */
  readonly name: string;
  /** Milliseconds since 1970 when the host committed it. */
  readonly atMs: number;
  /** What came with it; undefined if nothing came. */
  payload(): Payload | undefined;
  payload<T>(check: Check<T>): T | undefined;
}

/** What sort of thing happened. `other` is what this version of the contract has no word for; its name says what. */
export type EventKind =
  | "signal"
  | "timer"
  | "deadline"
  | "transition"
  | "desired-changed"
  | "failure"
  | "created"
  | "child"
  | "join"
  | "effect"
  | "cancel"
  | "operator"
  | "other";

/** A lease that this execution holds: over all its steps, until it is released or lost, or the execution ends. */
export interface Lease {
  readonly name: string;
  /** Milliseconds of the host's store time left before it is over, unless it is renewed; 0 if it is lost. */
  readonly timeLeftMs: Integer;
  /** The token of this grant, to carry outside: higher than that of any grant of this lease before. */
  readonly token: number;
  /** Whether it is still held under this grant. True is the answer of one moment. */
  stillHolds(): boolean;
  /** Begins the time to live that the machine declares, or this many milliseconds, anew. Rejections: fenced, limit, unavailable. */
  extend(ttlMs?: Integer): void;
  /** Gives it back before the execution ends. Rejections: fenced, unavailable. */
  release(): void;
}

/** A request for the next state. Made by `to`. */
export interface Draft<Data = unknown, Outputs = unknown> {
  readonly state: string;
  readonly content: Content<Data, Outputs>;
}

/** What goes on record with a save or a transition. */
export interface Content<Data = unknown, Outputs = unknown> {
  /** Replaces the data document; left out, it stays. */
  data?: Data;
  /** Replaces the outputs document; left out, it stays. */
  outputs?: Outputs;
  /** Applied after the documents were replaced, in order. An object sets each of its paths: `{ "data.size": 4 }`. */
  set?: Changes;
  /** Published with it, each replacing the one of its type. */
  conditions?: Condition[];
}

/** Begins a request for the next state. */
export function to<Data = never, Outputs = never>(state: string, content?: Content<Data, Outputs>): Draft<Data, Outputs>;

/** A published status of the entity, one per type. */
export interface Condition {
  /** Names what is said: `NodesPlaced`. `interlock/` belongs to the host. */
  type: string;
  status: boolean | "unknown";
  /** One word for programs. */
  reason?: string;
  /** One sentence for people. */
  message?: string;
}

/** Mutations in order, or an object that sets each of its paths. */
export type Changes = Mutation[] | { [path: string]: Value };

/** One change of one field, applied by the host inside the transaction. */
export interface Mutation {
  readonly [made]: "mutation";
}

/** A value that JSON can hold, or one `from` elsewhere. */
export type Value = From | Json;

/** What a JSON document holds, a BigInt for an integer beyond 2^53. What else an object has in it is refused at run time. */
export type Json = null | boolean | number | bigint | string | object;

/** A value that the host evaluates inside the transaction. Made by `from`. */
export interface From {
  readonly [made]: "from";
}

/** `from("now")`, `from("now+5m")`, `from("execution")`, `from("event.size")`, `from("data.size")`: it cannot be stale. */
export function from(source: string): From;

/** Puts the value at the path; objects on the way are made. */
export function set(field: string, value: Value): Mutation;
/** Adds a number, which may be negative; a missing field starts from 0. */
export function increment(field: string, by: Value): Mutation;
/** Takes the field away. */
export function remove(field: string): Mutation;
/** Adds to the end of a list, of which at most so many stay. */
export function append(field: string, item: Value, limit: number): Mutation;
/** Keeps the larger of the field and the value. */
export function max(field: string, value: Value): Mutation;
/** Keeps the smaller of the field and the value. */
export function min(field: string, value: Value): Mutation;

/**
 * A decided no. The system worked; nothing was changed. Thrown by whatever asks the host; uncaught, it fails the
 * attempt under its code: a retry if it is retryable, else permanent.
 */
export class Rejection extends Error {
  private constructor();
  readonly kind: RejectionKind;
  /** The exact rule, stable across releases: `spent`, `fenced`, `schema`. */
  readonly code: string;
  /** What it is about: an entity, a state, a field. */
  readonly subject: string;
  /** What would have been accepted. */
  readonly expected: string;
  /** What was found instead. */
  readonly got: string;
  /** Whether the same request can be accepted later, unchanged. */
  readonly retryable: boolean;
  /** When it makes sense to try again; undefined if nobody knows. */
  readonly retryAfterMs?: Integer;
  /** More for programs; its shape depends on the code. */
  readonly detail?: any;
}

/** The kinds of refusal; the same words as over HTTP and on the command line. */
export type RejectionKind =
  | "invalid"
  | "not-found"
  | "denied"
  | "late"
  | "fenced"
  | "busy"
  | "not-allowed"
  | "conflict"
  | "guard"
  | "limit"
  | "unavailable";

/** How a step says that this attempt came to nothing. Nothing since its last accepted save remains. */
export class Failure extends Error {
  private constructor();
  /** Try again, by the state's declared retry policy. */
  static retry(reason: string, options?: FailureOptions): Failure;
  /** Retries would not help: take the declared failure path at once. */
  static permanent(reason: string, options?: FailureOptions): Failure;
  readonly permanent: boolean;
  readonly code: string;
  readonly reason: string;
  readonly retryAfterMs?: Integer;
}

export interface FailureOptions {
  /** One word for programs; `failed` if it is left out. */
  code?: string;
  /** The earliest next attempt; the policy's back-off may be later. Without meaning if permanent. */
  afterMs?: Integer;
  cause?: unknown;
}
