/**
 * Timers whose due time the step decides. The state that a timer belongs to declares it with `due = "step"`.
 *
 * Each is staged for the next commit: a transition sets timers of the visit it enters, a save those of this one. A
 * refused commit and a reload drop what was staged. Rejections: fenced, spent, invalid, limit.
 */
import type { AnyEntity, Integer } from "../interlock.js";

/** Due so many milliseconds after the commit, by wall time; part of one counts as a whole one. */
export function after(entity: AnyEntity, name: string, ms: Integer): void;

/** Due at this instant, a Date or milliseconds since 1970; at once if it is past. */
export function at(entity: AnyEntity, name: string, when: Date | Integer): void;

/** Not due at all: takes back what is staged under the name, and with a save the pending timer of this visit. */
export function cancel(entity: AnyEntity, name: string): void;
