// Where in the author's sources an error came from: a stack of the engine's, read through the bundle's source map.

/** The bundle's name, as the engine spells it in a stack. */
export const BUNDLE = "steps.bundle.js";
const FRAME = new RegExp(`^([^@]*)@.*${BUNDLE.replaceAll(".", "\\.")}:(\\d+):(\\d+)$`);

/**
 * Where the build leaves what stands where: `sources`, the author's files by their path, and `lines`: of each line of the
 * bundle that came from them its `[column, source, line]`, columns and lines from 0, in order.
 */
export const MAP = "__interlock_map";

/** The innermost `file:line` of the author's, if the error's stack has one. */
export function sourcePlace(error) {
  return sourceFrames(error.stack)[0]?.place;
}

/** The frames of a stack that are the author's, innermost first: `function` and `place`. */
export function sourceFrames(stack) {
  const frames = [];
  for (const frame of String(stack).split("\n")) {
    const found = FRAME.exec(frame);
    const place = found && original(Number(found[2]), Number(found[3]));
    if (place) frames.push({ function: found[1].replace(/[/<]+$/, "").split("/").at(-1), place });
  }
  return frames;
}

function original(line, column) {
  const { sources, lines } = globalThis[MAP] ?? { sources: [], lines: {} };
  const segments = lines[line - 1];
  const segment = segments?.findLast(([from]) => from <= column - 1) ?? segments?.[0];
  return segment && `${sources[segment[1]]}:${segment[2] + 1}`;
}
