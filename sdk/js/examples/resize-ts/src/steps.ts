// Resize a pool: plan, wait for the provider, verify. The machine is guests/resource; its host keeps others out.

import { Failure, steps, to, type Entity } from "interlock";
import { search } from "./placement.ts"; // a plain search, tested without a host
import { health } from "./provider.ts"; // where the nodes come from; here it only pretends

type Data = { size: number; target: number; nodes: string[] };
type Desired = { image: string };
type Outputs = { size: number; endpoint: string };
type Pool = Entity<Data, Desired, Outputs>;

function plan(pool: Pool) {
  const data = pool.data();
  const image = pool.desired()?.image ?? ""; // none before the first apply
  const nodes = search(data.target, image);
  if (!nodes) throw Failure.permanent(`no room for ${data.target} of ${JSON.stringify(image)}`, { code: "no-room" });
  console.info(`found a place for ${data.target}`, { nodes: nodes.join(" ") });
  return pool.transition(to("provisioning", { data: { ...data, nodes } }));
}

function verify(pool: Pool) {
  const data = pool.data();
  const image = pool.desired()?.image ?? "";
  if (data.nodes.length !== data.target) {
    throw Failure.permanent("nodes are missing from the plan", { code: "plan-broken" });
  }
  switch (health(image, pool.attempt)) {
    case "starting":
      throw Failure.retry("the nodes are still starting", { code: "starting" });
    case "withdrawn":
      throw Failure.permanent("the provider took the nodes back", { code: "withdrawn" });
    case "up": {
      const size = data.target;
      const outputs = { size, endpoint: `${pool.key}.pool.example` };
      return pool.transition(to("ready", { data: { ...data, size }, outputs }));
    }
  }
}

export default steps({ plan, verify });
