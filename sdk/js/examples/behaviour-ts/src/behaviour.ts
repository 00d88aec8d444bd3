// What the behaviours share.

import { Failure, Rejection, type Done, type Entity, type Value } from "interlock";

/** What the event asks for. */
export type Ask = { what: string; value?: Value };

export type Data = { what?: string; saw?: any; count?: number };

export type Pool = Entity<Data, unknown, { result: Value }, Ask>;

/** What became of a behaviour: an answer, which goes into `data.saw` on the way to `idle`, or its own transition. */
export type Went = { saw: Value } | { done: Done };

export type Behaviours = Record<string, (pool: Pool, value: any) => Went>;

/** What a request is refused with, or undefined. */
export function refusal(ask: () => unknown): Rejection | undefined {
  try {
    ask();
    return undefined;
  } catch (error) {
    if (error instanceof Rejection) return error;
    throw error;
  }
}

/** A refusal as the behaviours answer it. */
export function shown({ kind, code, subject, expected, got, retryable }: Rejection) {
  return { kind, code, subject, expected, got, retryable };
}

/** The answer of a behaviour that is to be refused. */
export function expectRefused(ask: () => unknown): Went {
  const no = refusal(ask);
  if (!no) throw Failure.permanent("it was not refused", { code: "not-refused" });
  return { saw: shown(no) };
}
