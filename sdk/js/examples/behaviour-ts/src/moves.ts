// What a step asks for: transitions, saves, failures, and what it hears if it may not.

import { append, Failure, from, increment, max, min, remove, set, to } from "interlock";
import { expectRefused, refusal, shown, type Behaviours } from "./behaviour.ts";

export const moves: Behaviours = {
  change(pool, value) {
    const draft = to("idle", {
      data: { what: "change", saw: value, count: 1 },
      outputs: { result: value },
      conditions: [
        { type: "Ready", status: true, reason: "AllThere", message: "everything is there" },
        { type: "Stale", status: false },
        { type: "Reachable", status: "unknown", reason: "NotAsked", message: "nobody has asked" },
      ],
    });
    return { done: pool.transition(draft) };
  },

  mutations(pool) {
    const draft = to("idle", {
      data: { what: "mutations", saw: { n: 1, gone: true, list: [1, 2], high: 5, low: 5 } },
      set: [
        set("data.saw.made.on.the.way", true),
        set("data.saw.null", null),
        set("data.saw.event", from("event.value")),
        increment("data.saw.n", 41),
        increment("data.saw.new", -1),
        remove("data.saw.gone"),
        append("data.saw.list", 3, 2),
        max("data.saw.high", 9),
        min("data.saw.low", 9),
      ],
    });
    return { done: pool.transition(draft) };
  },

  look: (pool) => ({ done: pool.transition(to("looking")) }),

  /** Three parts, each saved; where it stands is read anew from what was saved. */
  walk(pool) {
    for (;;) {
      const done = pool.data().saw.done ?? 0;
      if (done === 3) {
        const outputs = { result: done };
        return { done: pool.transition(to("idle", { outputs, conditions: [{ type: "Walked", status: true }] })) };
      }
      const walked = { type: "Walked", status: false, reason: "Walking", message: `${done} of 3` };
      pool.save({ set: [increment("data.saw.done", 1)], conditions: [walked] });
    }
  },

  /** For a scenario in which another write gets in first. */
  reload(pool) {
    const before = pool.version;
    const no = refusal(() => pool.transition(to("idle", { set: { "data.saw": "there was no conflict" } })));
    if (no?.kind !== "conflict") throw no ?? Failure.permanent("there was no conflict");
    pool.reload();
    return { saw: { kind: no.kind, grown: pool.version > before } };
  },

  "not-allowed": (pool) => expectRefused(() => pool.transition(to("nowhere"))),

  /** Refused with 1; the handle is as good as before, and 2 is enough. */
  guard(pool) {
    const no = refusal(() => pool.transition(to("counted", { set: { "data.count": 1 } })));
    if (!no) throw Failure.permanent("the guard let it through");
    return { done: pool.transition(to("counted", { set: { "data.count": 2, "data.saw": shown(no) } })) };
  },

  schema: (pool) => expectRefused(() => pool.transition(to("idle", { set: { "data.count": "many" } }))),

  denied: (pool) => expectRefused(() => pool.transition(to("idle", { set: { "desired.size": 1 } }))),

  /** 2^64 + 1: no 64 bits hold it, and it must not be rounded. */
  number(pool) {
    const no = refusal(() => pool.transition(to("idle", { set: { "data.saw": 2n ** 64n + 1n } })));
    if (!no) throw Failure.permanent("a number past 64 bits was taken", { code: "not-refused" });
    return { saw: { kind: no.kind } };
  },

  uncaught: (pool) => ({ done: pool.transition(to("nowhere")) }),

  retry(pool) {
    if (pool.attempt === 1) throw Failure.retry("not yet there", { code: "not-yet", afterMs: 30_000 });
    return { saw: { attempt: pool.attempt } };
  },

  "give-up"() {
    throw Failure.permanent("it is of no use", { code: "no-use" });
  },

  exception() {
    throw new Error("this step is broken");
  },
};
