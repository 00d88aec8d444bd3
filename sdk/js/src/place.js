// Where in the author's sources an error came from: a stack of the engine's, read through the bundle's source map.

/** The bundle's name, as the engine spells it in a stack. */
export const BUNDLE = "steps.bundle.js";
const FRAME = new RegExp(`^([^@]*)@.*${BUNDLE.replaceAll(".", "\\.")}:(\\d+):(\\d+)$`);

/** Where the build leaves the bundle's map: `sources`, the author's by their path, and `mappings`. */
export const MAP = "__interlock_map";

let map; // its mappings, decoded when a place is first asked for

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
  const { sources, mappings } = globalThis[MAP] ?? { sources: [], mappings: "" };
  map ??= decoded(mappings);
  const segment = map[line - 1]?.findLast((one) => one.column <= column - 1) ?? map[line - 1]?.[0];
  const source = segment && sources[segment.source];
  return source ? `${source}:${segment.line + 1}` : undefined;
}

/** Source map v3: lines of segments, whose numbers are differences in base 64 VLQ. */
export function decoded(mappings) {
  let [source, line] = [0, 0];
  return mappings.split(";").map((text) => {
    let column = 0;
    return text
      .split(",")
      .map(vlq)
      .filter((numbers) => {
        column += numbers[0] ?? 0;
        numbers[0] = column;
        return numbers.length >= 4;
      })
      .map(([column, sources, lines]) => {
        [source, line] = [source + sources, line + lines];
        return { column, source, line };
      });
  });
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function vlq(text) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const digit of text) {
    const bits = DIGITS.indexOf(digit);
    value |= (bits & 31) << shift;
    shift += 5;
    if (bits < 32) {
      numbers.push(value & 1 ? -(value >> 1) : value >> 1);
      [value, shift] = [0, 0];
    }
  }
  return numbers;
}
