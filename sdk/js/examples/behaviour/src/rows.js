// Rows: one at a time, many, several at once, and with the next commit.

import { Failure, from, increment, set } from "interlock";
import { answers, field, requireEntity, table, transact } from "interlock/rows";
import { expectRefused, refusal, shown } from "./behaviour.js";

const jobsOf = (pool) => table(pool, "jobs");
const keys = (rows) => rows.map((row) => row.key);
const values = (rows) => rows.map((row) => row.value());

/** The value of a changed row, or the comparison that did not hold, or `absent`. */
const updated = (one) => (one.changed ? one.row.value() : (one.miss.guard ?? "absent"));
const written = ({ inserted, row }) => ({ inserted, value: row.value() });

export const rows = {
  rows(pool) {
    const jobs = jobsOf(pool);
    const put = jobs.put("a", { status: "new", n: 1 }, { ifAbsent: true });
    const got = jobs.get("a");
    const some = jobs.get("a", { fields: ["n"] });
    const nobody = jobs.get("nobody");
    const isNew = field("status").eq("new");
    const changed = jobs.update("a", { where: isNew, set: [set("status", "old"), increment("n", 1)] });
    const unmatched = jobs.update("a", { where: isNew, set: { status: "older" } });
    const absent = jobs.update("nobody", { set: { status: "old" } });
    const added = jobs.upsert("a", { status: "new", n: 0 }, { set: [increment("n", 5)] });
    const filled = jobs.upsert("b", { status: "new" }, { fill: { n: from("event.value") } });
    const gone = [jobs.delete("a").gone, jobs.delete("a").gone];
    if (!got || !some) throw Failure.permanent("a is not there");
    return {
      saw: {
        put: put.inserted,
        got: got.value(),
        key: got.key,
        claims: got.claims,
        claimed: got.claimedBy !== undefined,
        fields: some.value(),
        nobody: nobody === undefined,
        changed: updated(changed),
        unmatched: updated(unmatched),
        absent: updated(absent),
        added: written(added),
        filled: written(filled),
        gone,
      },
    };
  },

  "rows-etag"(pool) {
    const jobs = jobsOf(pool);
    const first = jobs.put("a", { status: "new", n: 1 }).row;
    const second = jobs.put("a", { status: "new", n: 2 }, { ifStill: first }).row;
    const stale = refusal(() => jobs.put("a", { status: "new", n: 3 }, { ifStill: first }));
    const there = refusal(() => jobs.put("a", { status: "new", n: 4 }, { ifAbsent: true }));
    const differ = first.etag !== second.etag;
    return { saw: { n: second.value().n, differ, stale: stale?.code, there: there?.code } };
  },

  /** The rows with an `n` of 2 or more, the greatest first, two at a time and their `n` alone. */
  "rows-query"(pool) {
    const jobs = jobsOf(pool);
    const order = { by: { index: "by-n" }, descending: true };
    const two = (next) => jobs.query({ where: field("n").ge(2), order, limit: 2, after: next, fields: ["n"] });
    const first = two();
    const second = two(first.next);
    const either = jobs.query({ where: field("n").eq(1).or(field("status").startsWith("d")) });
    return {
      saw: {
        first: keys(first.rows),
        values: values(first.rows),
        second: keys(second.rows),
        more: second.next !== undefined,
        either: keys(either.rows),
      },
    };
  },

  "rows-claim"(pool) {
    const jobs = jobsOf(pool);
    const taken = jobs.claim({ limit: 2 });
    const first = taken.rows[0];
    if (!first) throw Failure.permanent("nothing was claimed");
    const mine = field("claimed_by").eq(from("execution"));
    const settled = jobs.update(first.key, { where: mine, set: { status: "done" } });
    const rest = jobs.claim();
    const none = jobs.claim();
    return {
      saw: {
        taken: keys(taken.rows),
        status: first.value().status,
        claims: first.claims,
        mine: first.claimedBy === pool.execution,
        settled: settled.changed,
        rest: keys(rest.rows),
        none: keys(none.rows),
      },
    };
  },

  "rows-take"(pool) {
    const jobs = jobsOf(pool);
    const order = { by: { index: "by-n" }, descending: true };
    const taken = jobs.claim({ where: field("n").gt(1), order, limit: 1, andDelete: true });
    const marked = jobs.claim({ where: field("n").eq(1), set: [set("status", "mine"), increment("n", 10)] });
    return { saw: { taken: keys(taken.rows), marked: values(marked.rows) } };
  },

  /** Four operations and two conditions, one transaction. */
  "rows-transact"(pool) {
    const { part } = jobsOf(pool);
    const [put, changed, got, deleted] = transact(pool, [
      part.require("a", { where: field("n").eq(7) }),
      part.require("z", { absent: true }),
      part.put("x", { status: "new", n: 1 }),
      part.update("x", { set: [increment("n", 1)], must: true }),
      part.get("x"),
      part.delete("a", { where: field("n").lt(100) }),
    ]);
    return { saw: { put: put.inserted, changed: updated(changed), got: got?.value(), deleted: deleted.gone } };
  },

  /** The second operation must match and does not: neither is done. */
  "rows-must"(pool) {
    const { part } = jobsOf(pool);
    const put = part.put("x", { status: "new", n: 1 });
    return expectRefused(() => transact(pool, [put, part.update("nobody", { set: [increment("n", 1)], must: true })]));
  },

  /** With a save: conditions on a row and on an entity, and two changes. */
  "rows-stage"(pool) {
    const jobs = jobsOf(pool);
    jobs.staged.require("a", { where: field("status").eq("pending") });
    requireEntity(pool, pool.id, { states: [pool.state] });
    jobs.staged.update("a", { set: { n: from("data.saw.n") }, must: true });
    jobs.staged.put("b", { status: "new", n: 2 });
    const before = jobs.get("b") !== undefined;
    pool.save({ set: { "data.saw.n": 40 } });
    const [a, b] = answers(pool);
    return { saw: { before, a: updated(a), b: b.inserted } };
  },

  /** A condition that does not hold refuses the save, and what was staged is dropped. */
  "rows-require"(pool) {
    const jobs = jobsOf(pool);
    jobs.staged.require("a", { where: field("n").gt(100) });
    jobs.staged.put("b", { status: "new", n: 2 });
    const no = refusal(() => pool.save({ set: { "data.saw.n": 1 } }));
    if (!no) throw Failure.permanent("the requirement let it through");
    return { saw: shown(no) };
  },

  /** Counts under a name of the request and fails; the second attempt, which asks for something else first, is told of it. */
  "rows-named"(pool) {
    const jobs = jobsOf(pool);
    if (pool.attempt > 1) jobs.update("b", { set: [increment("n", 1)] });
    const counted = jobs.update("a", { set: [increment("n", 1)], op: "count" });
    if (pool.attempt === 1) throw Failure.retry("counted, and failed");
    return { saw: { attempt: pool.attempt, a: updated(counted) } };
  },

  /** Counts twice and fails; the second attempt asks the same and counts no more. */
  "rows-remembered"(pool) {
    const count = () => jobsOf(pool).update("a", { set: [increment("n", 1)] });
    const [first, second] = [count(), count()];
    if (pool.attempt === 1) throw Failure.retry("counted, and failed");
    return { saw: { attempt: pool.attempt, first: updated(first), second: updated(second) } };
  },

  "rows-id-reused"(pool) {
    const jobs = jobsOf(pool);
    jobs.update("a", { set: [increment("n", 1)], op: "count" });
    return expectRefused(() => jobs.update("a", { set: [increment("n", 2)], op: "count" }));
  },

  "rows-denied": (pool) => expectRefused(() => table(pool, "closed").get("a")),
};
