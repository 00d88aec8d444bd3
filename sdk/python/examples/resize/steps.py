"""Resize a pool: plan, wait for the provider, verify. The host keeps others out meanwhile."""

import logging
from dataclasses import dataclass

import placement  # a plain search, tested without a host
import provider  # where the nodes come from; here it only pretends

from interlock import Done, Entity, Failure, step, to


@dataclass
class Desired:
    image: str = ""


@dataclass
class Data:
    size: int
    target: int
    nodes: list[str]


@step
def plan(pool: Entity) -> Done:
    data = pool.data(Data)
    want = pool.desired(Desired) or Desired()  # none before the first apply
    nodes = placement.search(data.target, want.image)
    if nodes is None:
        raise Failure.permanent(f"no room for {data.target} of {want.image!r}", code="no-room")
    data.nodes = nodes
    logging.info("found a place for %d", data.target, extra={"nodes": " ".join(nodes)})
    return pool.transition(to("provisioning", data=data))


@step
def verify(pool: Entity) -> Done:
    data = pool.data(Data)
    want = pool.desired(Desired) or Desired()
    if len(data.nodes) != data.target:
        raise Failure.permanent("nodes are missing from the plan", code="plan-broken")
    health = provider.health(want.image, pool.attempt)
    if health == "starting":
        raise Failure.retry("the nodes are still starting", code="starting")
    if health == "withdrawn":
        raise Failure.permanent("the provider took the nodes back", code="withdrawn")
    data.size = data.target
    outputs = {"size": data.size, "endpoint": f"{pool.key}.pool.example"}
    return pool.transition(to("ready", data=data, outputs=outputs))
