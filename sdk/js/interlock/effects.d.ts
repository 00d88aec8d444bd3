/**
 * Requests that the host makes for a step, once the commit that carries them is durable: at least once, under one
 * `Idempotency-Key`, with this attempt's fencing token. A refused commit and a reload drop what was staged.
 */
import type { AnyEntity, Check, Event, Json } from "../interlock.js";

/** What a request carries. */
export interface Outbound {
  /** What the placeholders of the target's URL stand for. */
  params?: Record<string, string | number | bigint | boolean>;
  /** Headers to add; credentials are the target's business. */
  headers?: Record<string, string>;
  /** The body, sent as JSON. */
  body?: Json;
}

/** Stages a request to a target that the machine declares. Rejections: fenced, spent, invalid, denied, limit. */
export function request(entity: AnyEntity, target: string, outbound?: Outbound): void;

/** What came of a request: the payload of an event of the kind `effect`. */
export interface EffectResult<Body = unknown> {
  /** The `Idempotency-Key` it was sent under: the same over all tries. */
  effect: string;
  /** Its number in its entity's outbox. */
  number: number;
  target: string;
  /** The execution that asked for it. */
  execution: string;
  /** The status of the answer, if there was one. */
  status?: number | null;
  /** The body of the answer: JSON as it is, else as text. */
  body?: Body | null;
  /** Whether there was more of it than is kept. */
  truncated?: boolean;
  /** Why it was given up: `refused`, `exhausted`, `denied`, `withdrawn`, `fenced`; none if it was done. */
  code?: string | null;
  /** The same for people. */
  reason?: string | null;
}

/** What came of a request, if this event is about one; else a permanent failure, `no-effect`. */
export function result<Body = unknown>(event: Event<any>, check?: Check<Body>): EffectResult<Body>;
