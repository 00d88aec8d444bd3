// A decided no, in the host's words.

/** Thrown by whatever asks the host. The system worked; nothing was changed. */
export class Rejection extends Error {
  constructor({ kind, code, subject, expected, got, retryable, retryAfterMs, detail }) {
    super(`${code}: ${subject}: expected ${expected}, got ${got}`);
    Object.assign(this, { kind, code, subject, expected, got, retryable, retryAfterMs, detail });
  }

  get name() {
    return "Rejection";
  }
}
