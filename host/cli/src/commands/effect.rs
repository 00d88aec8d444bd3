//! `interlock effect ...`

use super::entity::stands;
use crate::args::Effect;
use crate::client::Client;
use crate::failed::Failed;
use crate::out::Out;
use crate::show;
use interlock_daemon::api::StandsView;
use interlock_daemon::{Problem, Reason};
use interlock_kernel::rejection::Code;

/// Runs it.
pub(crate) async fn run(args: Effect, client: &Client, out: Out) -> Result<(), Failed> {
    match args {
        Effect::List(args) => {
            let list = match &args.entity {
                Some(entity) => client.effects_of(entity).await?,
                None => {
                    let mut query = vec![("limit", args.limit.to_string())];
                    query.extend(args.machine.map(|machine| ("machine", machine.to_string())));
                    query.extend(args.target.map(|target| ("target", target.to_string())));
                    query.extend(args.stands.map(|stands| ("stands", StandsView::from(stands).as_str().to_owned())));
                    client.effects(&query).await?
                }
            };
            out.result(&list, |_| show::effects(&list));
            match (list.effects.is_empty(), list.more) {
                (true, _) => out.hint("no effect is under way, due or given up"),
                (false, true) => out.hint("there may be more: --limit, or --machine and --target"),
                (false, false) => {}
            }
        }
        Effect::Show { entity, number } => {
            let list = client.effects_of(&entity).await?;
            let Some(effect) = list.effects.into_iter().find(|effect| effect.number == number) else {
                let subject = format!("effect {number} of {entity}");
                let expected = "an effect that is not settled (interlock entity history has those that are)";
                let got = "none with this number";
                return Err(Problem::new(Reason::Decided(Code::NotFound), subject, expected, got).into());
            };
            out.result(&effect, |paint| show::effect(&effect, paint));
        }
        Effect::Retry { entity, number } => {
            let now = client.retry_effect(&entity, number).await?;
            out.result(&now, |_| stands(&now));
        }
        Effect::Drop { entity, number, reason } => {
            let now = client.drop_effect(&entity, number, &reason).await?;
            out.result(&now, |_| stands(&now));
        }
    }
    Ok(())
}
