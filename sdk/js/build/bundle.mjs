// The author's modules and this SDK as one module, with the map back to the sources.

import * as esbuild from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join, relative, resolve } from "node:path";
import { BUNDLE, MAP } from "../src/place.js";
import { places } from "./map.mjs";
import { Problems } from "./problems.mjs";

/** The module that puts the two together. */
const ENTRY = "<interlock>";

/** What Node has and a step has not, said where it is imported. */
const NODE = "a step has no Node: no files, no network, no processes";

/** `path` of the bundle, the `imports` it has of the host, its `inputs` from outside of the folder, and its `map`. */
export async function bundle({ folder, main, sdk, work }) {
  const path = join(work, BUNDLE);
  const { metafile } = await bundled({ folder, main, sdk, path });
  const map = places(JSON.parse(readFileSync(`${path}.map`, "utf8")), own({ folder, sdk, work }));
  // Behind the code, so that no line of it moves.
  writeFileSync(path, `${readFileSync(path, "utf8")}\nglobalThis.${MAP} = ${JSON.stringify(map)};\n`);
  const [output] = Object.values(metafile.outputs).filter((one) => one.entryPoint !== undefined);
  const files = Object.keys(metafile.inputs).map((file) => resolve(folder, file));
  const inputs = files.filter((file) => !file.endsWith(ENTRY) && !within(folder, file));
  return { path, map, inputs, imports: output.imports.map((one) => one.path) };
}

/** Whether a path is in a folder. */
function within(folder, path) {
  return !relative(folder, path).startsWith("..");
}

async function bundled({ folder, main, sdk, path }) {
  const at = (file) => JSON.stringify(join(sdk, file));
  const contents = `
    import { component } from ${at("src/component.js")};
    import steps from ${JSON.stringify(resolve(folder, main))};
    export const run = component(steps);`;
  try {
    return await esbuild.build({
      stdin: { contents, resolveDir: folder, sourcefile: ENTRY },
      outfile: path,
      absWorkingDir: folder,
      bundle: true,
      format: "esm",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["import", "default"],
      target: "esnext",
      sourcemap: "external",
      sourcesContent: false,
      metafile: true,
      logLevel: "silent",
      plugins: [ours(sdk)],
    });
  } catch (error) {
    throw error.errors ? new Problems(error.errors.map(problem)) : error;
  }
}

/** This SDK under the name that authors import it by, and the host's interfaces as imports of the component. */
function ours(sdk) {
  return {
    name: "interlock",
    setup(build) {
      build.onResolve({ filter: /^interlock(\/(timers|effects|rows))?$/ }, ({ path }) => ({ path: join(sdk, `${path}.js`) }));
      build.onResolve({ filter: /^interlock:/ }, ({ path }) => ({ path, external: true, sideEffects: false }));
    },
  };
}

function problem({ text, location }) {
  const [, name] = /^Could not resolve "(.*)"$/.exec(text) ?? [];
  const missing = name && !/^[./]/.test(name) && (isBuiltin(name) ? NODE : `npm install ${name}`);
  const noSteps = location?.file === ENTRY && !name;
  return {
    file: location && !noSteps ? location.file : null,
    line: location && !noSteps ? location.line : null,
    column: location && !noSteps ? location.column + 1 : null,
    text: noSteps ? `expected \`export default steps({ … })\`: ${text}` : [text, missing].filter(Boolean).join(": "),
  };
}

/** Of a source its path as seen from the folder; undefined if the author did not write it. */
function own({ folder, sdk, work }) {
  return (source) => {
    const path = resolve(work, decodeURIComponent(source));
    const others = within(sdk, path) || path.includes("/node_modules/") || path.endsWith(ENTRY);
    return others ? undefined : relative(folder, path);
  };
}
