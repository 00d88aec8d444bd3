"""Five steps that do nothing but ask for the next state, as guests/noop: for the benchmark."""

from interlock import Done, Entity, step, to


@step
def s1(entity: Entity) -> Done:
    return entity.transition(to("s2"))


@step
def s2(entity: Entity) -> Done:
    return entity.transition(to("s3"))


@step
def s3(entity: Entity) -> Done:
    return entity.transition(to("s4"))


@step
def s4(entity: Entity) -> Done:
    return entity.transition(to("s5"))


@step
def s5(entity: Entity) -> Done:
    return entity.transition(to("idle"))
