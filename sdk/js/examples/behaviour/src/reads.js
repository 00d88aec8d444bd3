// What a step reads.


export const reads = {
  read(pool) {
    const { id, kind, name, atMs } = pool.event;
    return {
      saw: {
        id: pool.id,
        key: pool.key,
        execution: pool.execution.startsWith(`${pool.id}@`),
        attempt: pool.attempt,
        state: pool.state,
        version: pool.version,
        desired: pool.desired() ?? null,
        data: pool.data(),
        outputs: pool.outputs() ?? null,
        cancel: pool.cancelRequested,
        time: pool.timeLeftMs > 0,
        event: { id, kind, name, payload: pool.event.payload(), at: atMs > 0 },
      },
    };
  },

  "read-nothing": (pool) => ({
    saw: { desired: pool.desired() === undefined, outputs: pool.outputs() === undefined },
  }),

  echo: (_pool, value) => ({ saw: value }),

  /** Null is a value; a field that is not there is undefined. Both are read back from what was saved. */
  nulls(pool) {
    pool.save({ set: { "data.saw": { null: null, list: [null] } } });
    const { saw } = pool.data();
    const word = (field) => (saw[field] === undefined ? "missing" : saw[field] === null ? "null" : "there");
    return { saw: { null: word("null"), other: word("other"), list: word("list") } };
  },
};
