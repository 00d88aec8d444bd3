//! `interlock machine ...`

use crate::args::Machine;
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;

/// Runs it.
pub(crate) async fn run(args: Machine, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Machine::List => {
            let list = client.machines().await?;
            out.result(&list, |_| show::machines(&list));
            if list.machines.is_empty() {
                out.hint("no machine is deployed yet: interlock deploy FOLDER");
            }
        }
        Machine::Show { name, manifest } => {
            let machine = client.machine(&name).await?;
            if manifest && !out.json {
                out.text(&machine.manifest);
            } else {
                out.result(&machine, |paint| show::machine(&machine, paint));
            }
        }
        Machine::Rollback { name, to } => {
            let deployed = client.rollback(&name, to).await?;
            out.result(&deployed, |paint| show::deployed(&deployed, paint));
            if deployed.new {
                out.hint(&format!(
                    "it brings back {to}; who does not follow it, and why: interlock machine show {}",
                    deployed.machine
                ));
            }
        }
    }
    Ok(())
}
