// Steps run where JSON reads and writes numbers as they are spelled; Node has that from 22 on, and 20 behind a flag.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

if (!JSON.rawJSON) {
  setFlagsFromString("--harmony-json-parse-with-source");
  globalThis.JSON = runInNewContext("JSON");
}

/** Why a test of numbers cannot run here, for `skip`. */
export const unexact = JSON.rawJSON ? false : `this Node (${process.version}) has no JSON.rawJSON; 22 has`;
