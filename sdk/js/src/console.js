// console, into the host's log: the level is the method's, an object at the end is the line's fields. What the engine's own
// has beside these would be lost, or measure time that stands still.

import { write } from "interlock:step/log@0.1.0";
import { line } from "./line.js";

const LEVELS = {
  trace: "trace",
  debug: "debug",
  log: "info",
  info: "info",
  dir: "info",
  table: "info",
  warn: "warn",
  error: "error",
};

let early = []; // lines of the modules' top level: the component is being built, and there is no host

for (const name of Object.getOwnPropertyNames(console)) delete console[name];

for (const [method, level] of Object.entries(LEVELS)) {
  console[method] = (...given) => {
    const { message, fields } = line(given);
    if (early) early.push([level, message, fields]);
    else write(level, message, fields);
  };
}

console.assert = (holds, ...given) => {
  if (!holds) console.error("assertion failed", ...given);
};

/** An attempt has begun: there is a host to write to. */
export function open() {
  const lines = early ?? [];
  early = undefined;
  for (const one of lines) write(...one);
}
