// Resize a pool: plan, wait for the provider, verify. The machine is guests/resource; its host keeps others out.

import { Failure, steps, to } from "interlock";
import { search } from "./placement.js"; // a plain search, tested without a host
import { health } from "./provider.js"; // where the nodes come from; here it only pretends

function plan(pool) {
  const data = pool.data();
  const image = pool.desired()?.image ?? ""; // none before the first apply
  const nodes = search(data.target, image);
  if (!nodes) throw Failure.permanent(`no room for ${data.target} of ${JSON.stringify(image)}`, { code: "no-room" });
  console.info(`found a place for ${data.target}`, { nodes: nodes.join(" ") });
  return pool.transition(to("provisioning", { data: { ...data, nodes } }));
}

function verify(pool) {
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
  }
  const size = data.target;
  const outputs = { size, endpoint: `${pool.key}.pool.example` };
  return pool.transition(to("ready", { data: { ...data, size }, outputs }));
}

export default steps({ plan, verify });
