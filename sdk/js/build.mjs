// Makes a component of a folder's steps: `node build.mjs REQUEST.json`.
//
// The request says where everything is: {folder, main, language, sdk, wit, out, work}. The last line of standard output
// is the answer: {uses, tool, inputs} with exit 0, `inputs` being what was read from outside of the folder; or {problems:
// [{file, line, column, text}]} with exit 1 for what the author has to mend. Anything else is a fault of the tools, and
// ends as node ends.

import { componentize, version } from "@bytecodealliance/componentize-js";
import { cpSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./build/bundle.mjs";
import { evaluationProblems, Problems } from "./build/problems.mjs";
import { checkTypes } from "./build/types.mjs";

/** All that the engine would import of WASI; without them a component imports what `wit/` has and nothing else. */
const FEATURES = ["random", "stdio", "clocks", "http", "fetch-event"];

/** What a component imports only if its steps use it. */
const POWERS = ["timers", "effects", "rows"];

async function build(request) {
  if (request.language === "ts") checkTypes(request);
  const { path, imports, inputs, map } = await bundle(request);
  const uses = POWERS.filter((power) => imports.includes(`interlock:step/${power}@0.1.0`));
  const component = await made(request, path, uses, map);
  writeFileSync(`${request.out}.new`, component);
  renameSync(`${request.out}.new`, request.out);
  return { uses, tool: `componentize-js ${version}`, inputs };
}

async function made({ wit, work }, sourcePath, uses, map) {
  const witPath = join(work, "wit");
  cpSync(wit, witPath, { recursive: true });
  const imports = uses.map((power) => `import ${power};`).join(" ");
  writeFileSync(join(witPath, "built.wit"), `package interlock:step@0.1.0;\nworld built { include step; ${imports} }\n`);
  try {
    return (await componentize({ sourcePath, witPath, worldName: "built", disableFeatures: FEATURES })).component;
  } catch (error) {
    throw evaluationProblems(error, map);
  }
}

function answer(value) {
  console.log(JSON.stringify(value));
}

/** The request, its folders without symbolic links: esbuild tells of files by their real paths. */
function asked() {
  const request = JSON.parse(readFileSync(process.argv[2], "utf8"));
  for (const name of ["folder", "sdk", "wit", "work"]) request[name] = realpathSync(request[name]);
  return request;
}

try {
  answer(await build(asked()));
} catch (error) {
  if (!(error instanceof Problems)) throw error;
  answer({ problems: error.problems });
  process.exitCode = 1;
}
