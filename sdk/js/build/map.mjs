// A bundle's source map, read once when the component is built: a step that fails has no time to do it.

/**
 * What `src/place.js` looks places up in, of a source map v3 (https://tc39.es/ecma426/). `own` gives the path of a source
 * that is the author's, and undefined for others, of which nothing is kept.
 */
export function places({ sources, mappings }, own) {
  const paths = sources.map(own);
  const lines = {};
  for (const [at, segments] of decoded(mappings).entries()) {
    const kept = segments.filter(([, source]) => paths[source] !== undefined);
    if (kept.length > 0) lines[at] = kept;
  }
  return { sources: paths, lines };
}

/** The segments of each line, `[column, source, line]`: in the map they are differences in base 64 VLQ. */
export function decoded(mappings) {
  let [source, line] = [0, 0];
  return mappings.split(";").map((text) => {
    const segments = [];
    let column = 0;
    for (const [columns, sources, lines] of text.split(",").filter(Boolean).map(vlq)) {
      column += columns;
      if (sources === undefined) continue;
      [source, line] = [source + sources, line + lines];
      segments.push([column, source, line]);
    }
    return segments;
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
