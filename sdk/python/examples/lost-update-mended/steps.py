"""Bills what was used. Usage may be reported meanwhile; after a conflict the step reads again, and decides again."""

from dataclasses import dataclass

from interlock import Done, Entity, Rejection, step, to


@dataclass
class Data:
    used: int
    billed: int


@step("bill-mended")
def bill(meter: Entity) -> Done:
    while True:
        data = meter.data(Data)
        data.billed = data.used
        try:
            return meter.transition(to("open", data=data))
        except Rejection as no:
            if no.kind != "conflict":
                raise
            meter.reload()
