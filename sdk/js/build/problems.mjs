// What the author has to mend, with its place.

import { BUNDLE, MAP, sourceFrames } from "../src/place.js";

/** Thrown where a build ends because of the author's sources. */
export class Problems extends Error {
  constructor(problems) {
    super("the sources have mistakes");
    this.problems = problems;
  }
}

/** One that names no place. */
export function problem(text) {
  return new Problems([{ file: null, line: null, column: null, text }]);
}

const THROWN = new RegExp(`^\\S*${BUNDLE.replaceAll(".", "\\.")}:\\d+:\\d+ (.*)$`, "m");
const CALLED = /attempted to call an unknown imported function: '([^']*)' '([^']*)'/;

/** The modules are evaluated as the component is made: what they threw then, or the tool's own fault as it is. */
export function evaluationProblems(error, map) {
  const said = String(error?.message);
  const called = CALLED.exec(said);
  if (called) {
    return problem(`the top level of a module calls ${called[1]} ${called[2]}: it runs once, when the component is built`);
  }
  const thrown = THROWN.exec(said);
  if (!thrown) return error;
  globalThis[MAP] = map;
  const stack = said.split("\n").map((line) => line.trim());
  const place = sourceFrames(stack.join("\n"))[0]?.place;
  const [, file, line] = /^(.*):(\d+)$/.exec(place ?? "") ?? [];
  const text = `${thrown[1]} (while its modules were evaluated)`;
  return new Problems([{ file: file ?? null, line: line ? Number(line) : null, column: null, text }]);
}
