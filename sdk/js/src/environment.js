// The engine's own world, made that of a step: time stands still, chance can be repeated, nothing waits.
//
// Left alone the engine gives the time of the build for `Date.now()`, the same numbers of `Math.random()` to every
// attempt of every entity, and ends the attempt without a word where a timer is asked for. This module is evaluated
// before the author's.

let current; // the entity and the event of this attempt; none while the component is built
let dice;

/** From here on time and chance are those of this attempt. */
export function enter(entity, atMs) {
  current = { entity, atMs };
  forget();
}

/** The next random number begins anew from the entity's version. */
export function forget() {
  dice = undefined;
}

const now = () => current?.atMs ?? 0;

const NativeDate = Date;
NativeDate.now = now;
globalThis.Date = new Proxy(NativeDate, {
  construct: (date, given, as) => Reflect.construct(date, given.length === 0 ? [now()] : given, as),
  apply: () => new NativeDate(now()).toString(),
});
NativeDate.prototype.constructor = globalThis.Date;

performance.now = () => 0;

Math.random = () => {
  dice ??= xorshift(current ? `${current.entity.execution}:${current.entity.version}` : "");
  return dice();
};

/** Marsaglia's xorshift over 64 bits, of which a double takes 53. */
function xorshift(seed) {
  let state = fnv1a(seed) || 1n;
  return () => {
    state ^= BigInt.asUintN(64, state << 13n);
    state ^= state >> 7n;
    state ^= BigInt.asUintN(64, state << 17n);
    return Number(state >> 11n) / 2 ** 53;
  };
}

function fnv1a(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash;
}

const MISSING = {
  setTimeout: "a step does not wait; the entity does: a state's `after`, or interlock/timers",
  setInterval: "a step does not wait; the entity does: a state's `after`, or interlock/timers",
  fetch: "a step has no network; the host makes its requests: interlock/effects",
};

for (const [name, instead] of Object.entries(MISSING)) {
  globalThis[name] = () => {
    throw new Error(`${name}: ${instead}`);
  };
}

AbortSignal.timeout = () => globalThis.setTimeout();

for (const name of ["getRandomValues", "randomUUID"]) {
  crypto[name] = () => {
    throw new Error(`crypto.${name}: a step has nothing secret; for a name of its own it has entity.execution`);
  };
}
