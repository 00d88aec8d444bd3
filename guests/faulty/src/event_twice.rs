//! Books a deposit, then waits for it to clear. How long a repeated deposit is recognised, the manifest says.

use interlock::{Done, Entity, Failure, to};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Data {
    balance: u32,
    amount: u32,
}

pub(crate) fn book(account: &Entity) -> Result<Done, Failure> {
    let mut data: Data = account.data()?;
    data.balance += data.amount;
    Ok(account.transition(to("clearing").data(&data))?)
}
