// Tests of fields, put together: any of these groups, each of which needs all of its tests.

import { value } from "./draft.js";

/** Made by `field`, and put together with `and` and `or`. */
export class Filter {
  constructor(groups) {
    this.groups = groups;
  }

  /** Both hold: every group of the one together with every group of the other. */
  and(other) {
    return new Filter(this.groups.flatMap((one) => other.groups.map((two) => [...one, ...two])));
  }

  /** One of them holds. */
  or(other) {
    return new Filter([...this.groups, ...other.groups]);
  }
}

/** Begins a test of a field: `field("status").eq("pending")`. */
export function field(path) {
  const test = (operator) => (to) => new Filter([[{ field: path, operator, value: value(path, to) }]]);
  return {
    eq: test("eq"),
    ne: test("ne"),
    lt: test("lt"),
    le: test("le"),
    gt: test("gt"),
    ge: test("ge"),
    oneOf: test("in"),
    noneOf: test("not-in"),
    exists: () => test("exists")(true),
    missing: () => test("exists")(false),
    contains: test("contains"),
    startsWith: test("starts-with"),
  };
}

/** As the host takes it; none matches everything. */
export function groups(filter) {
  if (filter === undefined) return [];
  if (!(filter instanceof Filter)) {
    throw new TypeError(`where: expected field("…").eq(…) or another test, got ${JSON.stringify(filter)}`);
  }
  return filter.groups;
}
