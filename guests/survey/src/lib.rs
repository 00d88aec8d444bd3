//! A long step that saves after each part. An attempt that dies loses one part at most: the next
//! begins from what was saved.

use interlock::{Condition, Done, Entity, Failure, Status, checkpoint, steps, to};
use serde::{Deserialize, Serialize};

/// Numbers looked at per part: some tens of milliseconds.
const PART: u32 = 100_000;

#[derive(Serialize, Deserialize)]
struct Data {
    parts: u32,
    done: u32,
    primes: u32,
}

#[derive(Serialize)]
struct Outputs {
    parts: u32,
    primes: u32,
}

fn walk(survey: &Entity) -> Result<Done, Failure> {
    let mut data: Data = survey.data()?;
    while data.done < data.parts {
        data.primes += primes_in(data.done * PART, PART);
        data.done += 1;
        let progress = format!("{} of {} parts", data.done, data.parts);
        let walked = Condition::new("Walked", Status::False).because("Walking", progress);
        survey.save(checkpoint().data(&data).condition(walked))?;
    }
    let outputs = Outputs { parts: data.parts, primes: data.primes };
    let walked = Condition::new("Walked", Status::True).because("Done", "every part");
    Ok(survey.transition(to("idle").outputs(&outputs).condition(walked))?)
}

fn primes_in(from: u32, count: u32) -> u32 {
    let is_prime = |n: &u32| *n > 1 && (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    (from..from + count).filter(is_prime).map(|_| 1).sum()
}

steps!(walk);

#[cfg(test)]
mod tests {
    use super::primes_in;

    #[test]
    fn parts_add_up() {
        assert_eq!(primes_in(0, 100), 25);
        assert_eq!(primes_in(0, 50) + primes_in(50, 50), 25);
    }
}
