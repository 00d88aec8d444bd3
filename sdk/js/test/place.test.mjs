// From a frame of the engine's to the author's line, through a map that esbuild made.

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildSync } from "esbuild";
import { decoded, places } from "../build/map.mjs";
import { BUNDLE, MAP, sourceFrames, sourcePlace } from "../src/place.js";

const SOURCE = ["// a comment", "export function plan(pool: { a: number }) {", "", "  const inner = () => {", "    throw new Error(`no`);", "  };", "  inner();", "}"];

test("frames of the bundle are those of the sources, and others are left out", () => {
  const stdin = { contents: SOURCE.join("\n"), sourcefile: "src/steps.ts", loader: "ts" };
  const built = buildSync({ stdin, write: false, sourcemap: "external", outfile: "out.js", format: "esm" });
  const [map, code] = built.outputFiles.map((file) => file.text);
  const lines = code.split("\n");
  const frame = (name, text) => {
    const line = lines.findIndex((one) => one.includes(text));
    return `${name}@${BUNDLE}:${line + 1}:${lines[line].indexOf(text) + 1}`;
  };
  globalThis[MAP] = places(JSON.parse(map), (source) => source);
  const stack = [frame("plan/inner", "throw"), frame("plan/<", "inner()"), "run@initializer.js:1:1", ""].join("\n");
  assert.deepEqual(sourceFrames(stack), [
    { function: "inner", place: "src/steps.ts:5" },
    { function: "plan", place: "src/steps.ts:7" },
  ]);
  assert.equal(sourcePlace({ stack }), "src/steps.ts:5");
  assert.equal(sourcePlace(new Error("no frame of the bundle")), undefined);
});

test("mappings are decoded by the rules of source maps", () => {
  assert.deepEqual(decoded(";AAAA,IAAI;ACgCA;"), [[], [[0, 0, 0], [4, 0, 0]], [[0, 1, 32]], []]);
});

test("of sources that are not the author's nothing is kept", () => {
  const map = { sources: ["a.js", "sdk.js"], mappings: "AAAA;ACAA;ADCA" };
  assert.deepEqual(places(map, (source) => (source === "sdk.js" ? undefined : source)), {
    sources: ["a.js", undefined],
    lines: { 0: [[0, 0, 0]], 2: [[0, 0, 1]] },
  });
});
