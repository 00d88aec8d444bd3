// What a step can do, one behaviour each: the event `do` names it, guests/behaviour/README.md says what each does and
// answers.

import { Failure, steps, to } from "interlock";
import { result } from "interlock/effects";
import { hostile } from "./hostile.js";
import { moves } from "./moves.js";
import { powers } from "./powers.js";
import { reads } from "./reads.js";
import { rows } from "./rows.js";

const all = { ...reads, ...moves, ...powers, ...rows, ...hostile };

function behave(pool) {
  const { what, value = null } = pool.event.payload();
  if (!Object.hasOwn(all, what)) throw Failure.permanent(what, { code: "unknown-behaviour" });
  const went = all[what](pool, value);
  return "done" in went ? went.done : pool.transition(to("idle", { set: { "data.saw": went.saw } }));
}

/** The second step: answers what entered its state. */
function look(pool) {
  const { event } = pool;
  const { kind, name } = event;
  let saw = { kind, name, payload: event.payload() !== undefined };
  if (kind === "effect") {
    const { target, status = null, body = null, code = null } = result(event);
    saw = { kind, name, target, status, body, code };
  }
  return pool.transition(to("idle", { set: { "data.saw": saw } }));
}

export default steps({ behave, look });
