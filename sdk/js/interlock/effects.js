// Requests that the host makes for a step. `effects.d.ts` says each word.

import * as effects from "interlock:step/effects@0.1.0";
import { Failure } from "../src/failure.js";
import { checked, handle } from "../src/entity.js";
import { asked } from "../src/host.js";
import { encode } from "../src/json.js";

export function request(entity, target, { params = {}, headers = {}, body } = {}) {
  const texts = (given) => Object.entries(given).map(([name, value]) => [name, String(value)]);
  const outbound = {
    target,
    params: texts(params),
    headers: texts(headers),
    body: body === undefined ? undefined : encode("body", body),
  };
  asked(() => effects.request(entity[handle], outbound));
}

export function result(event, check) {
  const payload = event.kind === "effect" ? event.payload() : undefined;
  if (payload === undefined) {
    const reason = `expected the result of an effect, got ${event.kind} ${event.name}`;
    throw Failure.permanent(reason, { code: "no-effect" });
  }
  return { ...payload, body: checked("body", payload.body, check) };
}
