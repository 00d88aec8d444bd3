// Asking the host: its no is thrown as a `Rejection`, its 64-bit integers are numbers where those are exact.

import { decode } from "./json.js";
import { fromHost } from "./integer.js";
import { Rejection } from "./rejection.js";

/** What `ask` returns, or its no. */
export function asked(ask) {
  try {
    return ask();
  } catch (error) {
    throw Object.hasOwn(error, "payload") ? rejection(error.payload) : error;
  }
}

function rejection({ retryAfterMs, detail, ...rest }) {
  return new Rejection({
    ...rest,
    retryAfterMs: retryAfterMs === undefined ? undefined : fromHost(retryAfterMs),
    detail: detail === undefined ? undefined : decode(detail),
  });
}
