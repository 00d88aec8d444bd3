//! `interlock explore`: every order of what can happen, from a folder's scenarios.

use super::stage::{Staged, Theatre, aside, find, manifest, only, scenarios_of, short};
use crate::args::Explore;
use crate::failed::{Code, Failed};
use crate::out::Out;
use crate::show::{self, Searched};
use interlock_lab::explore::{Options, Path, explore, replay};
use interlock_lab::scenario::Scenario;
use interlock_store::{Clock as _, SystemClock};

/// Runs it: a promise that breaks is a refusal.
pub(crate) async fn run(args: Explore, out: Out) -> Result<(), Failed> {
    let found = match find(std::slice::from_ref(&args.path))?.as_slice() {
        [one] => one.clone(),
        _ => return Err(Failed::Input(format!("{}: expected one machine's folder, got several", args.path.display()))),
    };
    let manifest = manifest(&found.folder, out)?;
    let (mut scenarios, unreadable) = scenarios_of(&found, &manifest)?;
    unreadable.iter().for_each(|report| out.findings_of(report));
    if !unreadable.is_empty() {
        return Out::over(Code::Input);
    }
    let theatre = Theatre::open()?;
    let staged = theatre.stage(&found.folder, manifest, args.component.as_deref(), out).await?;
    let options = Options {
        depth: args.depth,
        faults: args.faults,
        states: args.states,
        sees_tokens: staged.sees_tokens,
        all_orders: args.all_orders,
    };
    if let Some(order) = &args.replay {
        return again(staged, &scenarios, order, options, &args, out).await;
    }
    if let Some(text) = &args.filter {
        only(&mut scenarios, text, &[])?;
    }
    let stopwatch = SystemClock::new();
    let mut broken = false;
    for scenario in &scenarios {
        let (scenario, stage) = (scenario.clone(), staged.stage.clone());
        let name = short(&scenario);
        out.hint(&format!("searching from {name}: {}", scenario.name));
        let sentence = scenario.name.clone();
        let found = aside(move || explore(&scenario, &stage, options)).await?.map_err(anyhow::Error::from)?;
        broken |= found.broken.is_some();
        let searched = Searched::of(&name, &sentence, &searched_in(&args), &found);
        out.result(&searched, |paint| show::searched(&searched, paint));
    }
    out.hint(&format!("{:.1} s", stopwatch.monotonic().as_secs_f64()));
    if broken { Out::over(Code::Refused) } else { Ok(()) }
}

/// What is searched, as the command line names it.
fn searched_in(args: &Explore) -> String {
    let component = args.component.as_ref().map(|given| format!(" --component {}", given.display()));
    format!("{}{}", args.path.display(), component.unwrap_or_default())
}

/// Plays one order again: `SCENARIO:CHOICES`, as a search has printed it.
async fn again(
    staged: Staged,
    scenarios: &[Scenario],
    order: &str,
    options: Options,
    args: &Explore,
    out: Out,
) -> Result<(), Failed> {
    let (name, path) = order.split_once(':').ok_or_else(|| {
        Failed::Input(format!("--replay: expected SCENARIO:CHOICES as a search prints it, got {order:?}"))
    })?;
    let path: Path = path.parse().map_err(|why| Failed::Input(format!("--replay: {why}")))?;
    let names: Vec<String> = scenarios.iter().map(short).collect();
    let place = names.iter().position(|known| known == name);
    let scenario = place.and_then(|place| scenarios.get(place).cloned()).ok_or_else(|| {
        Failed::Input(format!("--replay: expected one of the scenarios {}, got {name:?}", show::list(&names)))
    })?;
    let sentence = scenario.name.clone();
    let stage = staged.stage.clone();
    let told = aside(move || replay(&scenario, &stage, options, &path)).await?.map_err(anyhow::Error::from)?;
    let searched = Searched::again(name, &sentence, &searched_in(args), &told);
    out.result(&searched, |paint| show::searched(&searched, paint));
    if told.broken.is_some() { Out::over(Code::Refused) } else { Ok(()) }
}
