// What must come to nothing. guests/behaviour/README.md says what stops each.

import { Failure, to } from "interlock";
import { expectRefused, refusal } from "./behaviour.js";

const moved = (pool, saw = "moved") => pool.transition(to("idle", { set: { "data.saw": saw } }));

export const hostile = {
  "second-transition"(pool) {
    const done = moved(pool, "the first");
    const no = refusal(() => moved(pool, "the second"));
    console.info(`heard ${no?.code}`);
    return { done };
  },

  "throws-on"(pool) {
    moved(pool);
    throw new Error("after its transition this changes nothing");
  },

  "loops-on"(pool) {
    moved(pool);
    for (;;);
  },

  "refused-often"(pool) {
    const heard = Array.from({ length: 40 }, () => refusal(() => pool.transition(to("nowhere")))).filter(Boolean);
    return { saw: `${heard.length} refusals were answered` };
  },

  loop() {
    for (;;);
  },

  "all-memory"() {
    const taken = [];
    while (taken.push(new Uint8Array(1 << 20).fill(1)) < 1 << 16);
    throw Failure.permanent("there was no end to the memory");
  },

  /** Far past the budget of an attempt: the lines are dropped and counted, the step goes on. */
  "log-flood"() {
    const line = "on and on ".repeat(100);
    for (let n = 0; n < 2_000; n++) console.info(line);
    return { saw: "still here" };
  },

  "large-document": (pool) =>
    expectRefused(() => pool.transition(to("idle", { set: { "data.saw": "x".repeat(300 * 1024) } }))),

  /** In TypeScript this has no right type: only a transition gives a `Done`. */
  "no-transition": () => ({ done: undefined }),
};
