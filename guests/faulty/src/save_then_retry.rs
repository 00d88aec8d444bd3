//! Writes to every reader and counts what it sent. The count is saved, and a retry does not begin from it.

use interlock::{Done, Entity, Failure, Mutation, checkpoint, to};
use serde::Deserialize;

#[derive(Deserialize)]
struct Data {
    readers: u32,
    sent: u32,
}

pub(crate) fn mail(letter: &Entity) -> Result<Done, Failure> {
    let data: Data = letter.data()?;
    for _reader in 0..data.readers {
        letter.save(checkpoint().mutation(one_more()))?;
    }
    Ok(letter.transition(to("sent"))?)
}

pub(crate) fn mail_mended(letter: &Entity) -> Result<Done, Failure> {
    let data: Data = letter.data()?;
    for _reader in data.sent..data.readers {
        letter.save(checkpoint().mutation(one_more()))?;
    }
    Ok(letter.transition(to("sent"))?)
}

fn one_more() -> Mutation {
    Mutation::Increment("data.sent".to_owned(), 1.into())
}
