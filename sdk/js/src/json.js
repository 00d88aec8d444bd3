// Documents as text and back, without rounding: an integer that a double cannot hold is a BigInt.
//
// What is refused is refused as the host refuses text that is no JSON, so that a step meets one sort of no.

import { Rejection } from "./rejection.js";

const INTEGER = /^-?\d+$/;
/** Fewer digits in a row always fit a double. */
const PERHAPS_LARGE = /\d{16}/;

/** A document as a value. */
export function decode(text) {
  return PERHAPS_LARGE.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_key, value, context) {
  const rounded = typeof value === "number" && !Number.isSafeInteger(value) && INTEGER.test(context.source);
  return rounded ? BigInt(context.source) : value;
}

/** A value as a document; `subject` says which one in a refusal. */
export function encode(subject, value) {
  let text;
  try {
    text = JSON.stringify(value, written);
  } catch (why) {
    // A TypeError is the engine's: something that contains itself.
    throw why instanceof Unwritable || why.name === "TypeError" ? refused(subject, why.message) : why;
  }
  if (text === undefined) {
    throw refused(subject, value === undefined ? "undefined" : `a ${typeof value}`);
  }
  return text;
}

class Unwritable extends Error {}

function written(key, value) {
  switch (typeof value) {
    case "bigint":
      return JSON.rawJSON(integer(key, value));
    case "number":
      return number(key, value);
    case "object":
      if (value instanceof Map || value instanceof Set) {
        throw new Unwritable(`a ${value.constructor.name}${at(key)}; Object.fromEntries or an array holds the same`);
      }
  }
  return value;
}

const LEAST = -(2n ** 63n);
const MOST = 2n ** 64n - 1n;

function integer(key, value) {
  if (value < LEAST || value > MOST) {
    throw new Unwritable(`${value}${at(key)}, which 64 bits do not hold`);
  }
  return String(value);
}

function number(key, value) {
  if (!Number.isFinite(value)) {
    throw new Unwritable(`${value}${at(key)}`);
  }
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) {
    return value;
  }
  if (BigInt(value) >= LEAST && BigInt(value) <= MOST) {
    throw new Unwritable(`the number ${value}${at(key)}, which may have been rounded; a BigInt is exact`);
  }
  return JSON.rawJSON(value.toExponential()); // no 64-bit integer: a double, and written as one
}

function at(key) {
  return key === "" ? "" : ` in ${JSON.stringify(key)}`;
}

function refused(subject, got) {
  return new Rejection({
    kind: "invalid",
    code: "json",
    subject,
    expected: "a value that JSON can hold",
    got,
    retryable: false,
  });
}
