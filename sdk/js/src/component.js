// The component's export: a step by its name, and what came of it as the host takes it.

import { enter } from "./environment.js";
import { open } from "./console.js";
import { Entity } from "./entity.js";
import { failureOf } from "./outcome.js";
import { isSteps, named } from "./steps.js";

/** `run`, of what the author's module exports. */
export function component(steps) {
  if (!isSteps(steps)) {
    throw new TypeError("expected `export default steps({ … })`, with `steps` from interlock");
  }
  return async function run(name, host, event) {
    const entity = new Entity(host, event);
    enter(entity, entity.event.atMs);
    open();
    try {
      await named(steps, name)(entity);
      return { tag: "ok" };
    } catch (error) {
      return { tag: "err", val: failureOf(error) };
    }
  };
}
