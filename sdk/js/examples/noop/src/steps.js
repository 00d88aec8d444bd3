// Five steps that do nothing but ask for the next state, as guests/noop: for the benchmark.

import { steps, to } from "interlock";

const next = (state) => (entity) => entity.transition(to(state));

export default steps({ s1: next("s2"), s2: next("s3"), s3: next("s4"), s4: next("s5"), s5: next("idle") });
