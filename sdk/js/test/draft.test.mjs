// Drafts, mutations and filters, as the host takes them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unexact } from "./engine.mjs";
import { append, change, checkpoint, from, increment, max, min, mutations, remove, set, to } from "../src/draft.js";
import { field, groups } from "../src/filter.js";
import { asks, entityCondition, querying, rowCondition } from "../src/operation.js";

const json = (val) => ({ tag: "json", val });

test("a draft says what it says and leaves the rest alone", () => {
  assert.deepEqual(change(to("ready")), { to: "ready", data: undefined, outputs: undefined, set: [], conditions: [] });
  assert.deepEqual(checkpoint({ data: { a: 1 }, outputs: null }), { data: '{"a":1}', outputs: "null", set: [], conditions: [] });
});

test("a document that is named is not forgotten because it is undefined", () => {
  assert.throws(() => change(to("ready", { data: undefined })), { code: "json", subject: "data", got: "undefined" });
});

test("conditions are true, false or unknown", () => {
  const status = (status) => checkpoint({ conditions: [{ type: "Placed", status }] }).conditions[0];
  assert.deepEqual(status(true), { type: "Placed", status: "true", reason: "", message: "" });
  assert.equal(status(false).status, "false");
  assert.equal(status("unknown").status, "unknown");
});

test("each mutation, in order", { skip: unexact }, () => {
  const all = [set("data.a", 1n), increment("data.b", -2), remove("data.c"), append("data.d", "x", 3), max("data.e", from("now")), min("data.f", null)];
  assert.deepEqual(mutations(all).map(({ tag, val }) => [tag, val]), [
    ["set", { field: "data.a", value: json("1") }],
    ["increment", { field: "data.b", value: json("-2") }],
    ["remove", "data.c"],
    ["append", { field: "data.d", value: json('"x"'), limit: 3 }],
    ["max", { field: "data.e", value: { tag: "from", val: "now" } }],
    ["min", { field: "data.f", value: json("null") }],
  ]);
});

test("an object of paths sets each", () => {
  assert.deepEqual(mutations({ "data.a": 1, "data.b": from("now") }), [set("data.a", 1), set("data.b", from("now"))]);
});

test("what is no draft, mutation or filter is said so", () => {
  assert.throws(() => change("ready"), /expected to\("state", \{ … \}\), got "ready"/);
  assert.throws(() => mutations([{ a: 1 }]), /expected set\(…\), increment\(…\) or another mutation, got \{"a":1\}/);
  assert.throws(() => groups({ status: "x" }), /expected field\("…"\)\.eq\(…\) or another test, got \{"status":"x"\}/);
});

test("filters are put together as any of all", () => {
  const a = field("a").eq(1);
  const tests = (filter) => groups(filter).map((group) => group.map((one) => `${one.field} ${one.operator} ${one.value.val}`));
  assert.deepEqual(tests(a.or(field("b").missing()).and(field("c").oneOf(["x"]))), [
    ["a eq 1", 'c in ["x"]'],
    ["b exists false", 'c in ["x"]'],
  ]);
  assert.deepEqual(groups(undefined), []);
});

test("operations on rows say nothing that they were not told", () => {
  assert.deepEqual(asks.get("k"), { key: json('"k"'), fields: [] });
  assert.deepEqual(asks.put(7, {}), { key: json("7"), value: "{}", fill: [], expect: undefined, fields: [] });
  assert.deepEqual(asks.put("k", {}, { ifAbsent: true }).expect, { tag: "absent" });
  assert.deepEqual(asks.put("k", {}, { ifStill: { etag: "e1" } }).expect, { tag: "etag", val: "e1" });
  assert.deepEqual(asks.claim(), {
    where: undefined,
    set: undefined,
    order: undefined,
    limit: undefined,
    delete: false,
    fields: [],
    must: false,
  });
  assert.deepEqual(querying({ order: { by: { index: "by_size" }, descending: true }, limit: 3, after: "n" }), {
    where: [],
    order: { by: { tag: "index", val: "by_size" }, descending: true },
    limit: 3,
    after: "n",
    fields: [],
  });
  assert.equal(querying({ order: {} }).order.by.tag, "created");
});

test("conditions of rows and entities", () => {
  assert.deepEqual(rowCondition("jobs", "k", { absent: true }).requirement, {
    tag: "row",
    val: { table: "jobs", key: json('"k"'), present: false, where: [] },
  });
  assert.deepEqual(entityCondition("cluster/eu", { states: ["ready"] }).requirement, {
    tag: "entity",
    val: { entity: "cluster/eu", states: ["ready"], where: [] },
  });
});
