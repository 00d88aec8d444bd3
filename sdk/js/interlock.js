// For step authors: a step is one function that ends by asking for a transition. `interlock.d.ts` says each word.

export { append, from, increment, max, min, remove, set, to } from "./src/draft.js";
export { Failure } from "./src/failure.js";
export { Rejection } from "./src/rejection.js";
export { steps } from "./src/steps.js";
