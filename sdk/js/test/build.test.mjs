// What a build says of the author's sources, up to the component itself.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { bundle } from "../build/bundle.mjs";
import { evaluationProblems } from "../build/problems.mjs";
import { checkTypes } from "../build/types.mjs";

const sdk = dirname(dirname(fileURLToPath(import.meta.url)));

/** Calls `use` with a request for a folder `step` with these files, of which `src/steps.*` is the main one. */
async function requested(files, use) {
  const at = realpathSync(mkdtempSync(join(tmpdir(), "interlock-")));
  try {
    for (const [path, text] of Object.entries(files)) {
      const file = join(at, "step", path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    mkdirSync(join(at, "work"));
    const main = Object.keys(files).find((path) => path.startsWith("src/steps."));
    return await use({ folder: join(at, "step"), work: join(at, "work"), main, sdk }, at);
  } finally {
    rmSync(at, { recursive: true });
  }
}

/** `file:line:column: text` of each problem of these files. */
async function problems(files, check = bundle) {
  const error = await requested(files, async (request) => check(request)).then(
    () => assert.fail("it was built"),
    (error) => error,
  );
  assert.ok(error.problems, error.stack);
  return error.problems.map(({ file, line, column, text }) => `${file}:${line}:${column}: ${text}`);
}

const STEPS = 'import { steps, to } from "interlock";\n';

test("the imports of a bundle are those that its steps use", async () => {
  const uses = async (text) => {
    const { imports } = await requested({ "src/steps.js": STEPS + text }, bundle);
    return ["timers", "effects", "rows"].filter((name) => imports.includes(`interlock:step/${name}@0.1.0`));
  };
  assert.deepEqual(await uses("export default steps({});"), []);
  assert.deepEqual(await uses('import { field } from "interlock/rows";\nexport default steps({ a: () => field("x") });'), []);
  assert.deepEqual(
    await uses('import { after } from "interlock/timers";\nimport { table } from "interlock/rows";\nexport default steps({ after, table });'),
    ["timers", "rows"],
  );
});

test("what was read from outside of the folder is told, and its lines are named", async () => {
  const files = {
    "src/steps.js": `${STEPS}import { x } from "../../shared #1.js";\nexport default steps({ x });`,
    "../shared #1.js": "export const x = () => 1;",
  };
  await requested(files, async (request, at) => {
    const { inputs, map } = await bundle(request);
    assert.deepEqual(inputs.filter((file) => !file.startsWith(sdk)), [join(at, "shared #1.js")]);
    assert.deepEqual(map.sources.filter(Boolean).sort(), ["../shared #1.js", "src/steps.js"]);
  });
});

test("each mistake has its place", async () => {
  assert.deepEqual(await problems({ "src/steps.js": `${STEPS}export default steps({` }), [
    'src/steps.js:2:23: Expected identifier but found end of file',
  ]);
  assert.deepEqual(await problems({ "src/steps.js": 'import fs from "fs";\nimport x from "no-such";\nfs(x);' }), [
    'src/steps.js:1:16: Could not resolve "fs": a step has no Node: no files, no network, no processes',
    'src/steps.js:2:15: Could not resolve "no-such": npm install no-such',
  ]);
  assert.deepEqual(await problems({ "src/steps.js": "export const run = 1;" }), [
    'null:null:null: expected `export default steps({ … })`: No matching export in "src/steps.js" for import "default"',
  ]);
});

test("a step in TypeScript that forgets its transition has no right type", async () => {
  const text = `${STEPS}import type { Entity } from "interlock";
function plan(pool: Entity<{ size: number }>) {
  pool.transition(to("ready"));
}
export default steps({ plan });`;
  const [one, ...more] = await problems({ "src/steps.ts": text }, checkTypes);
  assert.match(one, /^src\/steps\.ts:6:24: error TS2322: .*\n.*'void' is not assignable to type 'Done \| Promise<Done>'/);
  assert.deepEqual(more, []);
});

test("data of another type is no data of this entity", async () => {
  const text = `${STEPS}import type { Entity } from "interlock";
export default steps({ plan: (pool: Entity<{ size: number }>) => pool.transition(to("ready", { data: { size: "4" } })) });`;
  const [one] = await problems({ "src/steps.ts": text }, checkTypes);
  assert.match(one, /^src\/steps\.ts:3:\d+: error TS\d+: .*\{ size: string; \}/s);
});

test("what a module's top level threw has its place, and a fault of the tools is left as it is", () => {
  const map = { sources: ["src/other.js"], lines: { 6: [[2, 0, 3]] } };
  const said = "Exception while evaluating top-level script\nsteps.bundle.js:7:5 TypeError: no\nStack:\n  boom@steps.bundle.js:7:5\n";
  const text = "TypeError: no (while its modules were evaluated)";
  assert.deepEqual(evaluationProblems(new Error(said), map).problems, [{ file: "src/other.js", line: 4, column: null, text }]);
  const called = new Error("attempted to call an unknown imported function: 'wasi:random/random' 'get-random-u64'");
  assert.match(evaluationProblems(called, map).problems[0].text, /calls wasi:random\/random get-random-u64: it runs once, when/);
  const fault = new Error("no space left on device");
  assert.equal(evaluationProblems(fault, map), fault);
});
