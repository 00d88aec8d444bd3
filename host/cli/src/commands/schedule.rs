//! `interlock schedule ...`

use super::input;
use crate::args::{Schedule, ScheduleDeclare, ScheduleList};
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use interlock_manifest::parse_schedule;
use std::path::PathBuf;

/// Runs it.
pub(crate) async fn run(args: Schedule, client: &Client, out: Out) -> Result<(), Failed> {
    let view = match args {
        Schedule::Create(args) => return create(&args, client, out).await,
        Schedule::List(args) => return list(args, client, out).await,
        Schedule::Show { schedule, manifest } => {
            let found = client.schedule(&schedule).await?;
            if manifest && !out.json {
                out.text(&found.manifest);
                return Ok(());
            }
            found
        }
        Schedule::Pause { schedule } => client.pause_schedule(&schedule, true).await?,
        Schedule::Resume { schedule } => client.pause_schedule(&schedule, false).await?,
        Schedule::Drop { schedule } => {
            let last = client.drop_schedule(&schedule).await?;
            out.result(&last, |_| {
                format!("{schedule}   is gone; it had raised {}\n", show::count(last.raised, "event"))
            });
            return Ok(());
        }
    };
    out.result(&view, |paint| show::schedule(&view, paint));
    Ok(())
}

async fn create(args: &ScheduleDeclare, client: &Client, out: Out) -> Result<(), Failed> {
    let files = input::some_manifests(&args.paths, input::SCHEDULE_ENDING)?;
    declare(&files, args.check_only, client, out).await
}

/// Declares schedules, once all of them are sound.
///
/// # Errors
/// What is wrong with them, all of it shown; what the daemon says.
pub(crate) async fn declare(files: &[PathBuf], check_only: bool, client: &Client, out: Out) -> Result<(), Failed> {
    for text in input::sound(files, parse_schedule, out)? {
        let declared = client.declare_schedule(&text, check_only).await?;
        out.result(&declared, |paint| show::scheduled(&declared, paint));
    }
    Ok(())
}

async fn list(args: ScheduleList, client: &Client, out: Out) -> Result<(), Failed> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.after.map(|after| ("after", after)));
    let page = client.schedules(&query).await?;
    out.result(&page, |_| show::schedules(&page));
    if page.schedules.is_empty() {
        out.hint("no schedule is declared: interlock schedule create FOLDER");
    }
    if let Some(next) = &page.next {
        out.hint(&format!("there may be more: --after {next}"));
    }
    Ok(())
}
