// From a step's name in the manifest to the function that is it.

import { Failure } from "./failure.js";

const made = new WeakSet();

/** Makes these functions the steps of the component: `export default steps({ plan, verify })`. */
export function steps(functions) {
  for (const [name, step] of Object.entries(functions)) {
    if (typeof step !== "function") throw new TypeError(`step ${name}: expected a function, got ${typeof step}`);
  }
  const all = new Map(Object.entries(functions).map(([name, step]) => [spelled(name), step]));
  made.add(all);
  return all;
}

/** Whether `steps` made it. */
export function isSteps(value) {
  return made.has(value);
}

/** The name as the manifest spells it: `checkQuota` and `check_quota` are `check-quota` there. */
function spelled(name) {
  return name.replaceAll("_", "-").replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The step of this name. */
export function named(steps, name) {
  const step = steps.get(spelled(name));
  if (step) return step;
  const reason = `this component has no step ${JSON.stringify(name)}; it has ${[...steps.keys()].join(", ")}`;
  throw Failure.permanent(reason, { code: "unknown-step" });
}
