// What was thrown, as a failure of the attempt.

import { Failure } from "./failure.js";
import { milliseconds } from "./integer.js";
import { shown } from "./line.js";
import { sourceFrames } from "./place.js";
import { Rejection } from "./rejection.js";

/** The host's record of it. A rejection that nobody caught is a retry if it is retryable, else permanent. */
export function failureOf(error) {
  if (error instanceof Failure) {
    return record(error.permanent, error.code, error.reason, error.retryAfterMs);
  }
  if (error instanceof Rejection) {
    return record(!error.retryable, error.code, error.message, error.retryAfterMs);
  }
  const frames = error instanceof Error ? sourceFrames(error.stack) : [];
  const reason = error instanceof Error ? shown(error) : `threw ${shown(error)}`;
  console.error(reason, { at: frames.map((one) => `${one.function} ${one.place}`).join(", ") });
  return record(false, "exception", reason);
}

function record(permanent, code, reason, retryAfterMs) {
  const after = retryAfterMs === undefined ? undefined : milliseconds("afterMs", retryAfterMs);
  return { permanent, code: String(code), reason: String(reason), retryAfterMs: after };
}
