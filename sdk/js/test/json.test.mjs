// Documents: what is an integer stays that integer, or is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unexact } from "./engine.mjs";
import { decode, encode } from "../src/json.js";

const exact = (name, run) => test(name, { skip: unexact }, run);

exact("every 64-bit integer comes back as it was written", () => {
  for (const text of ["9007199254740993", "-9223372036854775808", "9223372036854775807", "18446744073709551615"]) {
    assert.equal(decode(text), BigInt(text));
    assert.equal(encode("data", decode(text)), text);
    assert.equal(encode("data", decode(`{"a":[${text}]}`)), `{"a":[${text}]}`);
  }
});

exact("what a double holds is a number", () => {
  for (const [text, value] of [["9007199254740991", 9007199254740991], ["-0.5", -0.5], ["1e3", 1000], ["0", 0]]) {
    assert.equal(decode(text), value);
  }
  assert.equal(decode("12345678901234567.5"), 12345678901234567.5);
});

exact("digits within a text are no number", () => {
  assert.equal(decode('{"a":"9007199254740993"}').a, "9007199254740993");
});

exact("a double too large for 64 bits is written as a double", () => {
  assert.equal(encode("data", 1e20), "1e+20");
  assert.equal(decode(encode("data", 1e300)), 1e300);
});

const LOOP = {};
LOOP.self = LOOP;

for (const [value, got] of [
  [2 ** 53, /the number 9007199254740992, which may have been rounded; a BigInt is exact/],
  [{ size: -(2 ** 63) }, /the number -9223372036854776000 in "size", which may have been rounded/],
  [2n ** 64n, /18446744073709551616, which 64 bits do not hold/],
  [[-(2n ** 63n) - 1n], /-9223372036854775809 in "0", which 64 bits do not hold/],
  [{ size: NaN }, /^NaN in "size"$/],
  [Infinity, /^Infinity$/],
  [undefined, /^undefined$/],
  [() => 1, /^a function$/],
  [Symbol("x"), /^a symbol$/],
  [{ nodes: new Map() }, /^a Map in "nodes"; Object\.fromEntries/],
  [new Set(), /^a Set;/],
  [LOOP, /cycl|circular/],
]) {
  exact(`refused as no JSON: ${String(got)}`, () => {
    assert.throws(
      () => encode("outputs", value),
      (refused) => {
        assert.deepEqual([refused.kind, refused.code, refused.subject, refused.retryable], ["invalid", "json", "outputs", false]);
        assert.match(refused.got, got);
        return true;
      },
    );
  });
}

exact("null, empty and nested documents are as they are", () => {
  for (const text of ["null", "{}", "[]", '""', '{"a":{"b":[null,{"c":""}]},"ä":"€😀"}']) {
    assert.equal(encode("data", decode(text)), text);
  }
});
