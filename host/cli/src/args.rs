//! The command line: what can be asked, and how it is explained.

mod author;
mod lease;
mod row;
mod schedule;
mod table;

pub(crate) use author::{Dev, New};
pub(crate) use lease::{Acquire, Lease, LeaseList, Right, Run, Terms};
pub(crate) use row::{Caller, Claim, Delete, Put, Query, Row, Transact, UpdateRow, Upsert};
pub(crate) use schedule::{Schedule, ScheduleDeclare, ScheduleList};
pub(crate) use table::{Declare, Table, TableList};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use interlock_daemon::api::{Existing, StandsView};
use interlock_kernel::ids::{EntityId, MachineName, Name};
use std::net::SocketAddr;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a fault nobody foresaw
  2  the input or its usage is wrong
  3  refused, or a scenario failed
  4  refused for now: the same again may be accepted later (busy, a full queue);
     or accepted, and not over within --wait
  5  the daemon is unavailable or not reachable
  124  lease run: the lease was lost and the command was stopped; else its own code

With --json, results and refusals are printed to standard output as JSON, one
document a line on streams; refusals are RFC 9457 problems. Without it, refusals
go to standard error.";

/// Guarded state machines, run as sandboxed WebAssembly steps on a durable store.
#[derive(Debug, Parser)]
#[command(name = "interlock", version, after_help = EXIT_CODES, max_term_width = 120)]
pub(crate) struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The daemon's address.
    #[arg(long, global = true, env = "INTERLOCK_URL", default_value = "http://127.0.0.1:7117", value_name = "URL")]
    pub(crate) url: String,
    /// Prints JSON instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints results only: no progress, no hints.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// One command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the daemon: the store, the steps, the HTTP API.
    Serve(Serve),
    /// Shows everything at once, against a real daemon that goes away afterwards.
    Demo(Demo),
    /// Makes a folder with a machine, its steps in one language, and scenarios that it passes.
    New(New),
    /// Builds steps, in Rust, JavaScript, TypeScript, Python or C, into components.
    Build(Build),
    /// Builds and deploys a machine on every change of its folder, and tells what becomes of its entities.
    Dev(Dev),
    /// Checks manifests: every problem at once, with line and remedy.
    Check(Check),
    /// Says what a component can do, and what keeps it from being deployed.
    Inspect(Inspect),
    /// Plays scenarios on a machine's real component: in memory, under time that they move.
    Test(Test),
    /// Searches what can happen to a machine: every order, crashes, lost answers; from its scenarios.
    Explore(Explore),
    /// Makes a machine's new revision active, once the tables of its folder are declared; then its schedules are.
    Deploy(Deploy),
    /// Machines and their revisions.
    #[command(subcommand)]
    Machine(Machine),
    /// Entities: make, ask, send, watch.
    #[command(subcommand)]
    Entity(Entity),
    /// Leases: named exclusive rights with a time to live, for programs outside.
    #[command(subcommand)]
    Lease(Lease),
    /// Tables: what rows are, and who may do what with them.
    #[command(subcommand)]
    Table(Table),
    /// Rows: JSON values by key, read, checked and written in one transaction.
    #[command(subcommand)]
    Row(Row),
    /// Schedules: events that the host raises again and again.
    #[command(subcommand)]
    Schedule(Schedule),
    /// Says why something stands where it stands, what comes next, and what can be done.
    Why(Why),
    /// Effects: requests to the outside that are due, under way or given up.
    #[command(subcommand)]
    Effect(Effect),
    /// Prints a completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where the store and the components are kept; made if it is not there.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// A loopback address: there is no authentication yet. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:7117", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// What effects may do: where they may go, with which secrets (docs/effects.md). Without it, nothing. SIGHUP has
    /// it read again.
    #[arg(long, env = "INTERLOCK_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Memory for steps that run at the same time, "1GiB", say. What is expected to take more than is free of it waits;
    /// steps that take at most 4MiB never do.
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = size)]
    pub(crate) guest_memory: u64,
    /// How logs are written to standard error; what is logged is RUST_LOG's to say.
    #[arg(long, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON document a line.
    Json,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keeps the daemon and its data, and says how to go on by hand.
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `build`.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Folders, each with the source of one step. What is in them tells the language: Cargo.toml, package.json,
    /// pyproject.toml, or .c files.
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folders: Vec<PathBuf>,
    /// Puts the component there; else it is in .interlock/build/ of its folder only.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Builds it although nothing has changed.
    #[arg(long)]
    pub(crate) force: bool,
}

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Manifests of machines, of tables (NAME.table.toml), or folders with them.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// An operator's configuration: warns of targets that it could never admit.
    #[arg(long, env = "INTERLOCK_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// `inspect`.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The component, or the folder of its source.
    #[arg(value_name = "FILE.wasm|FOLDER")]
    pub(crate) file: PathBuf,
}

/// `explore`.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// A folder with a machine.toml and scenarios, or one scenario.
    #[arg(default_value = ".", value_name = "FOLDER|FILE")]
    pub(crate) path: PathBuf,
    /// Only scenarios whose file or sentence has this text in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Searches with this component, or the one that the source in this folder builds, instead of the manifest's.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) component: Option<PathBuf>,
    /// Faults in one order: crashes, lost answers, doubled deliveries, slow steps. 1, if the scenario does not say.
    #[arg(long, value_name = "N")]
    pub(crate) faults: Option<u32>,
    /// Choices in one order. 80, if the scenario does not say.
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// Different states. 100,000, if the scenario does not say.
    #[arg(long, value_name = "N")]
    pub(crate) states: Option<usize>,
    /// Plays orders that give the same as another, too.
    #[arg(long)]
    pub(crate) all_orders: bool,
    /// Plays one order again and tells it: SCENARIO:CHOICES, as a search prints it.
    #[arg(long, value_name = "ORDER")]
    pub(crate) replay: Option<String>,
}

/// `test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Scenarios (NAME.scenario.toml), folders of a machine, or a folder of such folders.
    #[arg(value_name = "FOLDER|FILE", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only scenarios with this in their sentence or file name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Plays them on this component, or the one that the source in this folder builds, instead of the manifest's.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) component: Option<PathBuf>,
    /// Writes the transcripts that are there anew; with `--update=all` one for each scenario.
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "kept")]
    pub(crate) update: Option<Update>,
    /// Plays them again whenever a file in the folder changes, until it is ended.
    #[arg(long)]
    pub(crate) watch: bool,
}

/// Which transcripts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Update {
    /// Those that are there.
    Kept,
    /// One for each scenario.
    All,
}

/// `deploy`.
#[derive(Debug, Args)]
pub(crate) struct Deploy {
    /// A manifest, or a folder with a machine.toml.
    #[arg(value_name = "FOLDER|FILE")]
    pub(crate) path: PathBuf,
    /// Deploys this component, or the one that the source in this folder builds, instead of the manifest's.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) component: Option<PathBuf>,
}

/// `machine`.
#[derive(Debug, Subcommand)]
pub(crate) enum Machine {
    /// Every machine.
    List,
    /// One machine: owner, revisions, entities that do not follow the active one.
    Show {
        /// Its name.
        name: MachineName,
        /// Prints the active revision's manifest only.
        #[arg(long)]
        manifest: bool,
    },
    /// Makes the content of an earlier revision active, as a new revision.
    Rollback {
        /// Its name.
        name: MachineName,
        /// The revision to bring back.
        #[arg(long, value_name = "REVISION")]
        to: u64,
    },
}

/// `entity`.
#[derive(Debug, Subcommand)]
pub(crate) enum Entity {
    /// Makes an entity; the same again is the existing one.
    Create(Create),
    /// One entity, whole.
    Get {
        /// `machine/key`.
        entity: EntityId,
    },
    /// Entities, by machine and key.
    List(List),
    /// Writes `desired`: what clients want.
    Apply(Apply),
    /// Sends an event.
    Send(Send),
    /// What is on record.
    History(History),
    /// Tells what happens, as it happens.
    Watch(Watch),
    /// Takes an entity away that is at rest or over.
    Delete {
        /// `machine/key`.
        entity: EntityId,
    },
    /// Ends whatever it does, for good.
    Kill {
        /// `machine/key`.
        entity: EntityId,
        /// Why, for the record.
        #[arg(long)]
        reason: String,
    },
    /// Has a parked entity tried again, with fresh budgets.
    Unpark {
        /// `machine/key`.
        entity: EntityId,
    },
    /// Ends its execution as failed; refused while something but an operator can still move it.
    Unlock {
        /// `machine/key`.
        entity: EntityId,
        /// The state it enters: a rest or a failed final state.
        #[arg(long, value_name = "STATE")]
        to: Name,
        /// Although something can still move it.
        #[arg(long, requires = "reason")]
        force: bool,
        /// Why, for the record.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `effect`.
#[derive(Debug, Subcommand)]
pub(crate) enum Effect {
    /// Effects that are due, in flight or given up; of one entity, those behind them too.
    List(Effects),
    /// One effect, whole.
    Show {
        /// `machine/key`.
        entity: EntityId,
        /// Its number there.
        number: u64,
    },
    /// Has an effect tried again at once, with fresh tries, under the same key.
    Retry {
        /// `machine/key`.
        entity: EntityId,
        /// Its number there.
        number: u64,
    },
    /// Gives an effect up: those behind it go on.
    Drop {
        /// `machine/key`.
        entity: EntityId,
        /// Its number there.
        number: u64,
        /// Why, for the record.
        #[arg(long)]
        reason: String,
    },
}

/// `effect list`.
#[derive(Debug, Args)]
pub(crate) struct Effects {
    /// `machine/key`; without it, every entity.
    #[arg(conflicts_with_all = ["machine", "target", "stands"])]
    pub(crate) entity: Option<EntityId>,
    /// Only this machine's.
    #[arg(long)]
    pub(crate) machine: Option<MachineName>,
    /// Only to this target.
    #[arg(long)]
    pub(crate) target: Option<Name>,
    /// Only those that stand there.
    #[arg(long, value_name = "WHERE")]
    pub(crate) stands: Option<Stands>,
    /// At most this many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
}

/// Where an effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stands {
    /// Behind another one of its lane.
    Waits,
    /// The first of its lane, to be tried.
    Due,
    /// Handed to its target.
    InFlight,
    /// Given up.
    Dead,
}

impl From<Stands> for StandsView {
    fn from(stands: Stands) -> Self {
        match stands {
            Stands::Waits => Self::Waits,
            Stands::Due => Self::Due,
            Stands::InFlight => Self::InFlight,
            Stands::Dead => Self::Dead,
        }
    }
}

/// `entity create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// `machine/key`.
    pub(crate) entity: EntityId,
    /// What clients want: JSON, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) desired: Option<String>,
    /// A label; may stand more than once, each name once.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// What if there is one.
    #[arg(long, default_value = "same", value_name = "POLICY")]
    pub(crate) on_existing: OnExisting,
    /// An event that is decided in the same transaction.
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// That event's payload: JSON, @FILE, or - for standard input.
    #[arg(long, requires = "event", value_name = "JSON")]
    pub(crate) payload: Option<String>,
    /// That event's id; minted if there is none.
    #[arg(long, requires = "event")]
    pub(crate) id: Option<String>,
}

/// What a create does about an entity that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExisting {
    /// The same request is the existing entity, another a conflict.
    Same,
    /// A conflict always.
    Fail,
    /// The existing entity; the event is still delivered.
    Use,
    /// Deleted and made again, in one transaction.
    Recreate,
}

impl From<OnExisting> for Existing {
    fn from(policy: OnExisting) -> Self {
        match policy {
            OnExisting::Same => Self::Same,
            OnExisting::Fail => Self::Fail,
            OnExisting::Use => Self::Use,
            OnExisting::Recreate => Self::Recreate,
        }
    }
}

/// `entity list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only this machine's.
    pub(crate) machine: Option<MachineName>,
    /// Only those in this state.
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Only those with this label; may stand more than once.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) labels: Vec<(String, String)>,
    /// At most this many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Those behind this one.
    #[arg(long, value_name = "MACHINE/KEY")]
    pub(crate) after: Option<String>,
}

/// `entity apply`.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// `machine/key`.
    pub(crate) entity: EntityId,
    /// What clients want: JSON, @FILE, or - for standard input.
    pub(crate) desired: String,
    /// The generation it replaces. May be left out where the machine lets the last writer win.
    #[arg(long, value_name = "N")]
    pub(crate) if_generation: Option<u64>,
}

/// `entity send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// `machine/key`.
    pub(crate) entity: EntityId,
    /// The event's name.
    pub(crate) event: String,
    /// Its payload: JSON, @FILE, or - for standard input.
    pub(crate) payload: Option<String>,
    /// Its id: the same id again is the same answer. Minted and printed if there is none.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Waits until the execution it starts or joins ends or parks, at most this long.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "30s")]
    pub(crate) wait: Option<String>,
    /// Refused as a conflict unless the entity has this version.
    #[arg(long, value_name = "N")]
    pub(crate) expect_version: Option<u64>,
    /// Late unless desired has this generation.
    #[arg(long, value_name = "N")]
    pub(crate) expect_generation: Option<u64>,
    /// Late unless this execution holds the lock.
    #[arg(long, value_name = "ID")]
    pub(crate) expect_execution: Option<String>,
}

/// `entity history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    /// `machine/key`.
    pub(crate) entity: EntityId,
    /// At most this many entries, the newest.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Only entries before this number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) before: Option<u64>,
}

/// `entity watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// `machine/key`; without it, every entity.
    pub(crate) entity: Option<EntityId>,
    /// Only this machine's.
    #[arg(long, conflicts_with = "entity")]
    pub(crate) machine: Option<MachineName>,
    /// What happened behind this position, instead of from now on.
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<String>,
}

/// `why`.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// An entity, an execution (`machine/key@incarnation.number`) or a lease; an entity first.
    #[arg(value_name = "ENTITY|EXECUTION|LEASE")]
    pub(crate) name: String,
    /// It is a lease's name, although it could be an entity's.
    #[arg(long)]
    pub(crate) lease: bool,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = interlock_manifest::parse_bytes(text).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "expected a whole number and B, KiB, MiB or GiB: 512MiB".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// What is wrong with a command line, without how it is used.
pub(crate) fn said(why: &clap::Error) -> String {
    let text = why.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, String> {
        let words = std::iter::once("interlock").chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| cli.command).map_err(|why| why.to_string())
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wait_takes_a_time_or_none() {
        let wait = |line: &str| match parse(line) {
            Ok(Command::Entity(Entity::Send(send))) => Ok(send.wait),
            Ok(other) => Err(format!("{other:?}")),
            Err(why) => Err(why),
        };
        assert_eq!(wait("entity send m/k go"), Ok(None));
        assert_eq!(wait("entity send m/k go {} --wait"), Ok(Some("30s".to_owned())));
        assert_eq!(wait("entity send m/k go {} --wait 5s"), Ok(Some("5s".to_owned())));
    }

    #[test]
    fn the_memory_of_guests_is_what_the_runtime_has_by_default() {
        let memory = |line: &str| match parse(line) {
            Ok(Command::Serve(serve)) => Ok(serve.guest_memory),
            Ok(other) => Err(format!("{other:?}")),
            Err(why) => Err(why),
        };
        assert_eq!(memory("serve"), Ok(interlock_runtime::limits::GUEST_MEMORY_BYTES));
        assert_eq!(memory("serve --guest-memory 512MiB"), Ok(512 << 20));
    }

    #[test]
    fn malformed_names_are_refused_with_their_rule() {
        let refused = |line: &str| parse(line).err().unwrap_or_default();
        assert!(refused("entity get gpu-7").contains("expected machine/key"));
        assert!(refused("entity get Resource/gpu-7").contains("[a-z][a-z0-9-]*"));
        assert!(refused("machine show 9").contains("[a-z][a-z0-9-]*"));
        assert!(refused("entity create m/k --label x").contains("NAME=VALUE"));
        assert!(refused("entity kill m/k").contains("--reason"));
        assert!(refused("machine rollback m").contains("--to"));
        assert!(refused("entity watch m/k --machine m").contains("cannot be used with"));
        assert!(refused("serve --listen nowhere").contains("--listen"));
        assert!(refused("serve --guest-memory 512MB").contains("expected a whole number and B, KiB, MiB or GiB"));
        assert!(refused("serve --guest-memory 0B").contains("--guest-memory"));
        assert!(refused("effect drop m/k 1").contains("--reason"));
        assert!(refused("effect list m/k --target t").contains("cannot be used with"));
        assert!(refused("row update jobs a").contains("--set"));
        assert!(refused("row get Jobs a").contains("[a-z][a-z0-9_-]*"));
        assert!(refused("row put jobs a {} --if-version 1 --if-absent").contains("cannot be used with"));
        assert!(refused("row claim jobs --delete --set a=1").contains("cannot be used with"));
        assert!(refused("effect list --stands dea").contains("in-flight"));
    }

    #[test]
    fn global_options_stand_anywhere() {
        let cli = Cli::try_parse_from(["interlock", "machine", "list", "--json", "--url", "http://127.0.0.1:9", "-q"]);
        let global = cli.map(|cli| cli.global).map_err(|why| why.to_string());
        assert!(matches!(global, Ok(Global { json: true, quiet: true, url }) if url == "http://127.0.0.1:9"));
    }

    #[test]
    fn keys_may_contain_slashes() {
        let entity = match parse("entity get m/a/b") {
            Ok(Command::Entity(Entity::Get { entity })) => entity.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(entity, "m/a/b");
    }
}
