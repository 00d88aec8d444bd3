//! Five steps that do nothing but ask for the next state: the benchmark's guest.

use interlock::{Done, Entity, Failure, steps, to};

fn s1(entity: &Entity) -> Result<Done, Failure> {
    Ok(entity.transition(to("s2"))?)
}

fn s2(entity: &Entity) -> Result<Done, Failure> {
    Ok(entity.transition(to("s3"))?)
}

fn s3(entity: &Entity) -> Result<Done, Failure> {
    Ok(entity.transition(to("s4"))?)
}

fn s4(entity: &Entity) -> Result<Done, Failure> {
    Ok(entity.transition(to("s5"))?)
}

fn s5(entity: &Entity) -> Result<Done, Failure> {
    Ok(entity.transition(to("idle"))?)
}

steps!(s1, s2, s3, s4, s5);
