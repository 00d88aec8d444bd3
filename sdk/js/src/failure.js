// How a step says that this attempt came to nothing. What follows is the manifest's policy.

import { milliseconds } from "./integer.js";

/** Thrown by a step: `throw Failure.permanent("no room", { code: "no-room" })`. */
export class Failure extends Error {
  constructor(permanent, reason, { code = "failed", afterMs, cause } = {}) {
    super(reason, cause === undefined ? undefined : { cause });
    if (afterMs !== undefined) milliseconds("afterMs", afterMs);
    Object.assign(this, { permanent, code, retryAfterMs: afterMs });
  }

  /** Try again, by the state's declared retry policy. */
  static retry(reason, options) {
    return new Failure(false, reason, options);
  }

  /** Retries would not help: take the declared failure path at once. */
  static permanent(reason, options) {
    return new Failure(true, reason, options);
  }

  get name() {
    return "Failure";
  }

  get reason() {
    return this.message;
  }
}
