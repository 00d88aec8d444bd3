//! Buys within a budget: one step looks whether it is enough, the next one spends it. Between the two the
//! budget may be cut.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    budget: u32,
    spent: u32,
    price: u32,
}

impl Data {
    fn is_enough(&self) -> bool {
        self.spent + self.price <= self.budget
    }
}

pub(crate) fn check(account: &Entity) -> Result<Done, Failure> {
    let data: Data = account.data()?;
    Ok(account.transition(to(if data.is_enough() { "buying" } else { "open" }))?)
}

pub(crate) fn buy(account: &Entity) -> Result<Done, Failure> {
    let mut data: Data = account.data()?;
    data.spent += data.price;
    Ok(account.transition(to("open").data(&data))?)
}

/// Looks at what it writes: if that changes in between, the transition is a conflict and the retry looks again.
pub(crate) fn buy_mended(account: &Entity) -> Result<Done, Failure> {
    let mut data: Data = account.data()?;
    if data.is_enough() {
        data.spent += data.price;
    }
    Ok(account.transition(to("open").data(&data))?)
}
