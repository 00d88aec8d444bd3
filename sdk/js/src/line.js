// One line of a log, of what console was given.

import { sourcePlace } from "./place.js";

/** Message and fields: an object behind a text is the line's fields, everything else becomes text. */
export function line(given) {
  const fields = given.length > 1 && typeof given[0] === "string" && isPlain(given.at(-1)) ? given.at(-1) : {};
  const rest = fields === given.at(-1) ? given.slice(0, -1) : given;
  return {
    message: rest.map(shown).join(" "),
    fields: Object.entries(fields).map(([name, value]) => [name, shown(value)]),
  };
}

function isPlain(value) {
  if (typeof value !== "object" || value === null) return false;
  const proto = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null;
}

/** Any value as text. */
export function shown(value) {
  if (value instanceof Error) {
    const place = sourcePlace(value);
    return place ? `${value} (${place})` : String(value);
  }
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value, (_key, inner) => (typeof inner === "bigint" ? JSON.rawJSON(String(inner)) : inner));
  } catch {
    return Object.prototype.toString.call(value); // it contains itself
  }
}
