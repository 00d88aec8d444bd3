// Leases, fencing tokens, timers, effects and the log.

import { Failure, to } from "interlock";
import { request } from "interlock/effects";
import { after, at, cancel } from "interlock/timers";
import { expectRefused, type Behaviours } from "./behaviour.ts";

export const powers: Behaviours = {
  lease(pool) {
    const desk = pool.lease("desk");
    const { name, token } = desk;
    const holds = desk.stillHolds();
    desk.extend(300_000);
    const extended = desk.timeLeftMs > 60_000 && desk.token === token;
    desk.release();
    const again = pool.lease("desk", 30_000);
    return { saw: { name, holds, extended, short: again.timeLeftMs <= 30_000, grown: again.token > token } };
  },

  "lease-refused": (pool) => expectRefused(() => pool.lease("desk")),

  /** Fails once, so that a second attempt can compare. */
  fencing(pool) {
    if (pool.attempt === 1) {
      pool.save({ set: { "data.saw.token": pool.token } });
      throw Failure.retry("for another token");
    }
    return { saw: { grown: pool.token > pool.data().saw.token, holds: pool.stillHolds() } };
  },

  "timer-after"(pool) {
    after(pool, "bell", 60_000);
    return { done: pool.transition(to("waiting")) };
  },

  "timer-at"(pool) {
    at(pool, "gong", pool.event.atMs + 60_000);
    return { done: pool.transition(to("waiting")) };
  },

  "timer-cancel"(pool) {
    after(pool, "bell", 10_000);
    after(pool, "gong", 20_000);
    cancel(pool, "bell");
    return { done: pool.transition(to("waiting")) };
  },

  effect(pool, value) {
    request(pool, "api", { params: { item: value.item }, headers: { "X-Note": "from a step" }, body: value });
    return { done: pool.transition(to("waiting")) };
  },

  "effect-denied": (pool) =>
    expectRefused(() => request(pool, "api", { params: { item: 1 }, headers: { Authorization: "Bearer x" } })),

  log() {
    console.trace("this is trace");
    console.debug("this is debug");
    console.log("this is info");
    console.warn("this is warn");
    console.error("this is error");
    console.info("with fields", { n: 9007199254740993n, text: "Grüße" });
    return { saw: "logged" };
  },
};
