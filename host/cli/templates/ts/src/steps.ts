// One backup at a time: copy, let it settle, verify.
import { Failure, steps, to, type Entity } from "interlock";

type Data = { runs: number; label: string };
type Outputs = { location: string };
type Backup = Entity<Data, unknown, Outputs>;

function copy(entity: Backup) {
  const { label } = entity.data();
  console.info("copying", label);
  if (label === "full") throw Failure.permanent("there is no room left", { code: "disk-full" });
  return entity.transition(to("settling"));
}

function verify(entity: Backup) {
  const { runs, label } = entity.data();
  const outputs = { location: `backups/${entity.key}/${label}` };
  return entity.transition(to("idle", { data: { runs: runs + 1, label }, outputs }));
}

export default steps({ copy, verify });
