// What TypeScript says about the author's sources. esbuild takes the types away without reading them.

import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { Problems } from "./problems.mjs";

const DIAGNOSTIC = /^(.*)\((\d+),(\d+)\): (error TS\d+: .*)$/;

/** Throws what is wrong with the types. The author's tsconfig.json counts, if there is one. */
export function checkTypes({ folder, main, sdk, work }) {
  const own = join(folder, "tsconfig.json");
  const config = join(work, "tsconfig.json");
  const paths = { interlock: [join(sdk, "interlock.d.ts")], "interlock/*": [join(sdk, "interlock/*.d.ts")] };
  const base = existsSync(own) ? own : join(sdk, "tsconfig.json");
  const options = { paths, noEmit: true, rootDir: "/" };
  const files = [resolve(folder, main)];
  writeFileSync(config, JSON.stringify({ extends: base, compilerOptions: options, files, include: [] }));

  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const args = [join(typescript, "bin/tsc"), "--pretty", "false", "--project", config];
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  if (error) throw error;
  if (status !== 0) throw new Problems(diagnostics(folder, `${stdout}${stderr}`));
}

/** One for each error; the lines behind it that are indented belong to it. */
function diagnostics(folder, said) {
  const problems = [];
  for (const line of said.split("\n").filter(Boolean)) {
    const [, file, at, column, text] = DIAGNOSTIC.exec(line) ?? [];
    if (file) {
      const path = relative(folder, resolve(folder, file));
      problems.push({ file: path, line: Number(at), column: Number(column), text });
    } else if (line.startsWith(" ") && problems.length > 0) {
      problems.at(-1).text += `\n${line}`;
    } else {
      problems.push({ file: null, line: null, column: null, text: line });
    }
  }
  return problems;
}
