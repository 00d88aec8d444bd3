/**
 * Tables: rows that entities and clients share, under the rights that their declarations grant.
 *
 * ```ts
 * const jobs = table(worker, "jobs");
 * const taken = jobs.claim({ limit: 5 }); // nobody else has these until their status changes
 * for (const job of taken.rows) {
 *   const mine = field("claimed_by").eq(from("execution"));
 *   jobs.update(job.key, { where: mine, set: { status: "done" } });
 * }
 * // Counted in the transaction of the transition: once, or not at all.
 * table(worker, "counters").staged.update("done", { set: [increment("n", taken.rows.length)], must: true });
 * return worker.transition(to("idle"));
 * ```
 *
 * What is asked at once stays done whatever becomes of the attempt, and its answer is remembered for the attempts after
 * it; what is staged is done with the next accepted save or transition, or not at all.
 *
 * Rejections of what is asked at once: fenced, spent, invalid, not-found, denied, guard, conflict, limit, unavailable;
 * of what is staged: fenced, spent, invalid, limit.
 */
import type { AnyEntity, Changes, Check, From, Json, Value } from "../interlock.js";

/** A table that the machine names. */
export function table<T = unknown>(entity: AnyEntity, name: string): Table<T>;

/** A row's key: a text or an integer. */
export type Key = string | number | bigint | From;

/** A table, as this attempt may use it. Each of its methods is done at once. */
export interface Table<T = unknown> {
  /** One row by its key; undefined if there is none. */
  get(key: Key, options?: Fields): Row<T> | undefined;
  /** Rows by filter, from a snapshot. */
  query(options?: Querying): Page<T>;
  /** Writes a whole row, whatever is there, unless it says what it expects: a `conflict` otherwise. */
  put(key: Key, value: T, options?: Putting<T> & Named): Written<T>;
  /** Changes one row if a guard holds; never makes one. */
  update(key: Key, options: Updating & Named): Updated<T>;
  /** Inserts the row if it is absent, changes it otherwise: not at all, if no change is named. */
  upsert(key: Key, insert: T, options?: Upserting & Named): Written<T>;
  /** Takes rows that nobody else takes: as the table declares, or as it is said. */
  claim(options?: Claiming & Named): Claimed<T>;
  /** Removes one row if a guard holds. */
  delete(key: Key, options?: Deleting & Named): Deleted;
  /** The same, staged: the next accepted save or transition does it in its one transaction; `answers` has its answer. */
  readonly staged: Each<T, void>;
  /** The same, as parts of a transaction: see `transact`. */
  readonly part: Each<T, Part>;
}

/** Operations on a table that are not done at once. */
export interface Each<T, Given> {
  get(key: Key, options?: Fields): Given;
  put(key: Key, value: T, options?: Putting<T>): Given;
  update(key: Key, options: Updating): Given;
  upsert(key: Key, insert: T, options?: Upserting): Given;
  claim(options?: Claiming): Given;
  delete(key: Key, options?: Deleting): Given;
  /** A condition: the row is there, unless it is to be absent. If it does not hold all is refused: `guard`, `require`. */
  require(key: Key, options?: { absent?: boolean; where?: Filter }): Given;
}

/** Several operations, of one table or several, in order, and conditions that are judged before any: all or none, at once. */
export function transact(entity: AnyEntity, parts: Part[], options?: Named): Answer[];

/** A condition on an entity of this machine, or of one that its manifest names in `peers`: `machine/key`. Staged. */
export function requireEntity(entity: AnyEntity, id: string, options?: EntityTest): void;

/** The same as part of a transaction. */
export function entityCondition(id: string, options?: EntityTest): Part;

/** What the newest accepted save or transition answered to the operations that it carried, in their order. */
export function answers(entity: AnyEntity): Answer[];

export interface EntityTest {
  /** It is in one of these; left out, in any. */
  states?: string[];
  /** What is to hold of its documents: paths begin with `desired`, `data` or `outputs`. */
  where?: Filter;
}

/** Made by `table.part`, for `transact`. */
export interface Part {
  readonly [part]: true;
}
declare const part: unique symbol;

export interface Named {
  /**
   * The step's own name for what it asks: whoever asks again under it gets the same answer, until the next accepted save
   * or transition. Without it the request itself is its name, and how often it was asked.
   */
  op?: string;
}

export interface Fields {
  /** Only these top-level fields of the value are answered. */
  fields?: string[];
}

export interface Putting<T = unknown> extends Fields {
  /** Put into the value what only the transaction knows: `{ at: from("now") }`. */
  fill?: Changes;
  /** Only if there is no such row. */
  ifAbsent?: boolean;
  /** Only if the row is as it was when it was answered. */
  ifStill?: Row<T>;
}

export interface Updating extends Fields {
  /** Only if this holds of the row. */
  where?: Filter;
  /** The changes, at least one. */
  set: Changes;
  /** If it matches nothing the whole request is refused: `guard`, with the code `require`. */
  must?: boolean;
}

export interface Upserting extends Fields {
  fill?: Changes;
  /** The changes if it is there; none leaves it alone. */
  set?: Changes;
}

export interface Claiming extends Fields {
  /** Which, instead of those that the table declares. */
  where?: Filter;
  /** How they are marked, instead of as the table declares. */
  set?: Changes;
  /** Left out, first in, first out. */
  order?: Order;
  /** At most so many, up to 1,000; 10 if it is left out. */
  limit?: number;
  /** Removes the rows instead of marking them. */
  andDelete?: boolean;
  must?: boolean;
}

export interface Deleting {
  where?: Filter;
  must?: boolean;
}

export interface Querying extends Fields {
  where?: Filter;
  order?: Order;
  limit?: number;
  /** The `next` of an earlier page of the same query. */
  after?: string;
}

/** By insertion, by last change, or by a declared index. */
export interface Order {
  by?: "created" | "updated" | { index: string };
  /** The last first. */
  descending?: boolean;
}

/** A row as it stands behind the request. */
export interface Row<T = unknown> {
  readonly key: string;
  /** Names this content of this row. */
  readonly etag: string;
  readonly createdMs: number;
  readonly updatedMs: number;
  /** How often it was claimed. */
  readonly claims: number;
  /** Who has claimed it and is not done with it. */
  readonly claimedBy?: string;
  /** Its value, or the fields asked for. */
  value(): T;
  value<As>(check: Check<As>): As;
}

/** Why a row is as it was. */
export interface Miss {
  key: string;
  /** The comparison that did not hold; undefined if there is no such row. */
  guard?: string;
}

export interface Written<T = unknown> {
  /** Whether it is new. */
  inserted: boolean;
  row: Row<T>;
}

export type Updated<T = unknown> = { changed: true; row: Row<T> } | { changed: false; miss: Miss };

export interface Claimed<T = unknown> {
  /** The rows that this claim has, in order. */
  rows: Row<T>[];
  /** Whether it was cut by the bound on bytes, not by its limit. */
  more: boolean;
  /** Keys of rows that an earlier answer of this claim had, and that it has no more. */
  lost: string[];
}

export type Deleted = { gone: true; key: string } | { gone: false; miss: Miss };

export interface Page<T = unknown> {
  rows: Row<T>[];
  /** Where to go on, if there may be more. */
  next?: string;
}

/** What one of several operations is answered: as the method of its name answers. */
export type Answer = Row | undefined | Written | Updated | Claimed | Deleted;

/** Any of several groups of tests, each of which needs all of its tests. */
export interface Filter {
  /** Both hold. */
  and(other: Filter): Filter;
  /** One of them holds. */
  or(other: Filter): Filter;
}

/** Begins a test of a field; a missing one fails every test but `missing`. Paths are of the row: `payload.amount`. */
export function field(path: string): Field;

export interface Field {
  /** It is this; numbers by value. */
  eq(value: Value): Filter;
  /** It is there, and not this. */
  ne(value: Value): Filter;
  /** It is less: a number than a number, a text than a text. */
  lt(value: Value): Filter;
  le(value: Value): Filter;
  gt(value: Value): Filter;
  ge(value: Value): Filter;
  /** It is one of a list. */
  oneOf(list: Json[] | From): Filter;
  /** It is there, and none of a list. */
  noneOf(list: Json[] | From): Filter;
  /** It is there; null is. */
  exists(): Filter;
  /** It is not there. */
  missing(): Filter;
  /** It is a list with this in it, or a text with it inside. */
  contains(value: Value): Filter;
  /** It is a text that begins with this. */
  startsWith(text: string | From): Filter;
}
