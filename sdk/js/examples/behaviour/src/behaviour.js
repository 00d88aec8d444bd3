// What the behaviours share. Each returns `{ saw }`, an answer that goes into `data.saw` on the way to `idle`, or `{ done }`
// if it has asked for its transition itself.

import { Failure, Rejection } from "interlock";

/** What a request is refused with, or undefined. */
export function refusal(ask) {
  try {
    ask();
    return undefined;
  } catch (error) {
    if (error instanceof Rejection) return error;
    throw error;
  }
}

/** A refusal as the behaviours answer it. */
export function shown({ kind, code, subject, expected, got, retryable }) {
  return { kind, code, subject, expected, got, retryable };
}

/** The answer of a behaviour that is to be refused. */
export function expectRefused(ask) {
  const no = refusal(ask);
  if (!no) throw Failure.permanent("it was not refused", { code: "not-refused" });
  return { saw: shown(no) };
}
