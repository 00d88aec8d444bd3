// Names of steps, failures, integers of the host, lines of the log.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unexact } from "./engine.mjs";
import { Failure } from "../src/failure.js";
import { count, fromHost, instant, milliseconds } from "../src/integer.js";
import { line } from "../src/line.js";
import { named, steps } from "../src/steps.js";

test("a step is found by the manifest's spelling, and nothing else is a step", () => {
  const plan = () => {};
  const all = steps({ plan, checkQuota: plan, "move-pool": plan, give_back: plan });
  for (const name of ["plan", "check-quota", "move-pool", "give-back", "give_back"]) {
    assert.equal(named(all, name), plan);
  }
  for (const name of ["constructor", "checkquota", ""]) {
    assert.throws(() => named(all, name), { code: "unknown-step", permanent: true });
  }
  assert.throws(() => named(all, "x"), /no step "x"; it has plan, check-quota, move-pool, give-back/);
  assert.throws(() => steps({ plan: 1 }), /step plan: expected a function, got number/);
});

test("failures say what they are told", () => {
  const failure = Failure.retry("not yet", { code: "starting", afterMs: 10 });
  assert.deepEqual([failure.permanent, failure.code, failure.reason, failure.retryAfterMs], [false, "starting", "not yet", 10]);
  assert.deepEqual([Failure.permanent("no").permanent, Failure.permanent("no").code], [true, "failed"]);
  assert.throws(() => Failure.retry("no", { afterMs: -1 }), RangeError);
});

test("integers of the host are exact or refused", () => {
  assert.equal(fromHost(2n ** 53n - 1n), 2 ** 53 - 1);
  assert.equal(fromHost(2n ** 53n), 2n ** 53n);
  assert.equal(milliseconds("ms", 0.1), 1n);
  assert.equal(milliseconds("ms", 2n ** 64n - 1n), 2n ** 64n - 1n);
  assert.equal(instant("at", new Date(5)), 5n);
  assert.equal(instant("at", -5), -5n);
  assert.equal(count("limit", 3), 3);
  for (const wrong of [-1, 2n ** 64n, NaN, Infinity, 2 ** 53, "5", undefined]) {
    assert.throws(() => milliseconds("ms", wrong), /^RangeError: ms: expected a whole number from 0 to 18446744073709551615, got/);
  }
  assert.throws(() => count("limit", 1.5), RangeError);
  assert.throws(() => count("limit", 2 ** 32), RangeError);
  assert.throws(() => instant("at", new Date(NaN)), RangeError);
});

test("a line of the log: an object behind a text is its fields", { skip: unexact }, () => {
  const of = (...given) => line(given);
  assert.deepEqual(of("found", 3, { nodes: "a b", size: 2n }), { message: "found 3", fields: [["nodes", "a b"], ["size", "2"]] });
  assert.deepEqual(of({ a: 1 }), { message: '{"a":1}', fields: [] });
  assert.deepEqual(of("list", [1, 2n]), { message: "list [1,2]", fields: [] });
  assert.deepEqual(of(undefined, null, Symbol("s")), { message: "undefined null Symbol(s)", fields: [] });
  const loop = Object.create(null);
  loop.self = loop;
  assert.deepEqual(of(1, loop), { message: "1 [object Object]", fields: [] });
  assert.deepEqual(of(new TypeError("no")), { message: "TypeError: no", fields: [] });
});
