// The host's 64-bit integers, and JavaScript's two sorts of numbers.

/** A number where it is exact, else a BigInt. */
export function fromHost(value) {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER ? Number(value) : value;
}

/** Milliseconds as a u64. Part of one counts as a whole: nothing is due too early. */
export function milliseconds(what, value) {
  return within(what, typeof value === "number" ? Math.ceil(value) : value, 0n, 2n ** 64n - 1n);
}

/** An instant in milliseconds since 1970 as an s64; a Date is one. */
export function instant(what, value) {
  return within(what, value instanceof Date ? value.getTime() : value, -(2n ** 63n), 2n ** 63n - 1n);
}

/** A count as a u32. */
export function count(what, value) {
  return Number(within(what, value, 0n, 2n ** 32n - 1n));
}

function within(what, value, least, most) {
  const whole = typeof value === "bigint" || Number.isSafeInteger(value);
  if (!whole || value < least || value > most) {
    throw new RangeError(`${what}: expected a whole number from ${least} to ${most}, got ${String(value)}`);
  }
  return BigInt(value);
}
