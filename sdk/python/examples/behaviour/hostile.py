"""What must come to nothing. guests/behaviour says what stops each."""

import logging
from typing import Any

from asked import answer, behaviour, refusal, shown

from interlock import Done, Entity, to


@behaviour("second-transition")
def second_transition(entity: Entity, _: Any) -> Done:
    done = entity.transition(to("idle", set={"data.saw": "the first"}))
    no = refusal(lambda: entity.transition(to("idle", set={"data.saw": "the second"})))
    logging.info("heard %s", no.code)
    return done


@behaviour("throws-on")
def throws_on(entity: Entity, _: Any) -> Done:
    entity.transition(to("idle", set={"data.saw": "moved"}))
    raise RuntimeError("after its transition this changes nothing")


@behaviour("loops-on")
def loops_on(entity: Entity, _: Any) -> Done:
    entity.transition(to("idle", set={"data.saw": "moved"}))
    while True:
        pass


@behaviour("refused-often")
def refused_often(entity: Entity, _: Any) -> Done:
    for _turn in range(40):
        refusal(lambda: entity.transition(to("nowhere")))
    return answer(entity, "every refusal was answered")


@behaviour("loop")
def loop(entity: Entity, _: Any) -> Done:
    while True:
        pass


@behaviour("all-memory")
def all_memory(entity: Entity, _: Any) -> Done:
    taken = []
    while True:
        taken.append(bytearray(b"x") * (1 << 20))


@behaviour("log-flood")
def log_flood(entity: Entity, _: Any) -> Done:
    """Far past the budget of an attempt: the lines are dropped and counted, the step goes on."""
    line = "on and on " * 100
    for _turn in range(2_000):
        logging.info(line)
    return answer(entity, "still here")


@behaviour("large-document")
def large_document(entity: Entity, _: Any) -> Done:
    return answer(entity, shown(refusal(lambda: entity.transition(to("idle", set={"data.saw": "x" * 307_200})))))
