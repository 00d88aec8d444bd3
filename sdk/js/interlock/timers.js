// Timers whose due time the step decides. `timers.d.ts` says each word.

import * as timers from "interlock:step/timers@0.1.0";
import { handle } from "../src/entity.js";
import { asked } from "../src/host.js";
import { instant, milliseconds } from "../src/integer.js";

export function after(entity, name, ms) {
  const wait = milliseconds(`timer ${name}`, ms);
  asked(() => timers.after(entity[handle], name, wait));
}

export function at(entity, name, when) {
  const unixMs = instant(`timer ${name}`, when);
  asked(() => timers.at(entity[handle], name, unixMs));
}

export function cancel(entity, name) {
  asked(() => timers.cancel(entity[handle], name));
}
