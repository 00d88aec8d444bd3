"""Bills what was used. Usage may be reported meanwhile; the step then meets a conflict, reads again, and writes what it
knew before."""

from dataclasses import dataclass

from interlock import Done, Entity, Rejection, step, to


@dataclass
class Data:
    used: int
    billed: int


@step
def bill(meter: Entity) -> Done:
    data = meter.data(Data)
    data.billed = data.used
    while True:
        try:
            return meter.transition(to("open", data=data))
        except Rejection as no:
            if no.kind != "conflict":
                raise
            meter.reload()
