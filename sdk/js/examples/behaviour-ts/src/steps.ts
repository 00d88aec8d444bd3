// What a step can do, one behaviour each: the event `do` names it, guests/behaviour/README.md says what each does and
// answers.

import { Failure, steps, to } from "interlock";
import { result } from "interlock/effects";
import type { Ask, Behaviours, Pool } from "./behaviour.ts";
import { hostile } from "./hostile.ts";
import { moves } from "./moves.ts";
import { powers } from "./powers.ts";
import { reads } from "./reads.ts";
import { rows } from "./rows.ts";

const all: Behaviours = { ...reads, ...moves, ...powers, ...rows, ...hostile };

function behave(pool: Pool) {
  const { what, value = null } = pool.event.payload() as Ask;
  if (!Object.hasOwn(all, what)) throw Failure.permanent(what, { code: "unknown-behaviour" });
  const went = all[what]!(pool, value);
  return "done" in went ? went.done : pool.transition(to("idle", { set: { "data.saw": went.saw } }));
}

/** The second step: answers what entered its state. */
function look(pool: Pool) {
  const { event } = pool;
  const { kind, name } = event;
  let saw: object = { kind, name, payload: event.payload() !== undefined };
  if (kind === "effect") {
    const { target, status = null, body = null, code = null } = result(event);
    saw = { kind, name, target, status, body, code };
  }
  return pool.transition(to("idle", { set: { "data.saw": saw } }));
}

export default steps({ behave, look });
