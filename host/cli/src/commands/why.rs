//! `interlock why`: of an entity, an execution or a lease.

use crate::args::Why;
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use interlock_daemon::api::WhyView;
use interlock_kernel::ids::{EntityId, ExecutionRef, LeaseName};

/// Runs it.
pub(crate) async fn run(args: Why, client: &Client, out: Out) -> Result<(), Failed> {
    let why = if args.lease { lease(&args.name, client).await? } else { any(&args.name, client).await? };
    out.result(&why, |paint| show::why(&why, paint));
    Ok(())
}

async fn lease(name: &str, client: &Client) -> Result<WhyView, Failed> {
    let name: LeaseName = name.parse().map_err(|bad| Failed::Input(format!("{bad}")))?;
    client.why_lease(&name).await
}

/// An execution by its form; else an entity, and where there is none of this name, a lease.
async fn any(name: &str, client: &Client) -> Result<WhyView, Failed> {
    if let Ok(ExecutionRef { entity, .. }) = name.parse() {
        return client.why(&entity, Some(name)).await;
    }
    let Ok(entity) = name.parse::<EntityId>() else { return lease(name, client).await };
    let missing = match client.why(&entity, None).await {
        Err(Failed::Problem(problem)) if problem.status == 404 => Failed::Problem(problem),
        answered => return answered,
    };
    match lease(name, client).await {
        Err(Failed::Problem(problem)) if problem.status == 404 => Err(missing),
        answered => answered,
    }
}
