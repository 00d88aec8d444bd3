"""One backup at a time: copy, let it settle, verify."""

import logging
from dataclasses import dataclass

from interlock import Done, Entity, Failure, step, to


@dataclass
class Data:
    runs: int
    label: str


@step
def copy(entity: Entity) -> Done:
    data = entity.data(Data)
    logging.info("copying %s", data.label)
    if data.label == "full":
        raise Failure.permanent("there is no room left", code="disk-full")
    return entity.transition(to("settling"))


@step
def verify(entity: Entity) -> Done:
    data = entity.data(Data)
    data.runs += 1
    outputs = {"location": f"backups/{entity.key}/{data.label}"}
    return entity.transition(to("idle", data=data, outputs=outputs))
