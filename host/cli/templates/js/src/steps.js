// One backup at a time: copy, let it settle, verify.
import { Failure, steps, to } from "interlock";

/** @typedef {import("interlock").Entity<{ runs: number, label: string }>} Backup */

/** @param {Backup} entity */
function copy(entity) {
  const { label } = entity.data();
  console.info("copying", label);
  if (label === "full") throw Failure.permanent("there is no room left", { code: "disk-full" });
  return entity.transition(to("settling"));
}

/** @param {Backup} entity */
function verify(entity) {
  const { runs, label } = entity.data();
  const outputs = { location: `backups/${entity.key}/${label}` };
  return entity.transition(to("idle", { data: { runs: runs + 1, label }, outputs }));
}

export default steps({ copy, verify });
