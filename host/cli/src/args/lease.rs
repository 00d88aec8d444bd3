//! `lease`.

use clap::{Args, Subcommand};
use interlock_kernel::ids::LeaseName;
use std::ffi::OsString;

/// `lease`.
#[derive(Debug, Subcommand)]
pub(crate) enum Lease {
    /// Takes a lease, or renews it for the grant that has it.
    Acquire(Acquire),
    /// Renews it.
    Extend {
        /// The lease.
        lease: LeaseName,
        /// What it is held under.
        #[command(flatten)]
        right: Right,
        /// Another time to live; the one it was granted with if not given.
        #[arg(long, value_name = "TIME")]
        ttl: Option<String>,
    },
    /// Gives it back.
    Release {
        /// The lease.
        lease: LeaseName,
        /// What it is held under.
        #[command(flatten)]
        right: Right,
    },
    /// Who has it, who is next, what became of it lately.
    Show {
        /// The lease.
        lease: LeaseName,
    },
    /// Leases by name.
    List(LeaseList),
    /// Tells what becomes of it, as it happens.
    Watch {
        /// The lease.
        lease: LeaseName,
        /// What happened behind this position, instead of from now on.
        #[arg(long, value_name = "POSITION")]
        after: Option<String>,
    },
    /// Holds it around a command, which is stopped before somebody else could have it.
    Run(Run),
    /// Stops the command of a `lease run` that was killed. Started by that, and by nobody else.
    #[command(hide = true)]
    Guard,
}

/// On what terms a lease is asked for.
#[derive(Debug, Args)]
pub(crate) struct Terms {
    /// It is over after this long without a renewal.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) ttl: String,
    /// The longest in all, however often it is renewed; 1 d if not given.
    #[arg(long, value_name = "TIME")]
    pub(crate) hold_max: Option<String>,
    /// After a loss only the same grant may take it for this long.
    #[arg(long, value_name = "TIME")]
    pub(crate) lock_delay: Option<String>,
    /// What people are shown as its owner; this machine and process if not given.
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Stands in line for it, at most this long; the host allows 5 minutes.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "30s")]
    pub(crate) wait: Option<String>,
}

/// `lease acquire`.
#[derive(Debug, Args)]
pub(crate) struct Acquire {
    /// The lease.
    pub(crate) lease: LeaseName,
    /// On what terms.
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// What it will be held under: a secret. Minted and printed if there is none.
    #[arg(long, env = "INTERLOCK_GRANT", hide_env_values = true)]
    pub(crate) grant: Option<String>,
}

/// What a lease is held under.
#[derive(Debug, Args)]
pub(crate) struct Right {
    /// The grant, as `acquire` printed it. Others see a command line: the environment is the better place.
    #[arg(long, env = "INTERLOCK_GRANT", hide_env_values = true)]
    pub(crate) grant: String,
    /// The token that it came with.
    #[arg(long, env = "INTERLOCK_FENCING_TOKEN")]
    pub(crate) token: u64,
}

/// `lease list`.
#[derive(Debug, Args)]
pub(crate) struct LeaseList {
    /// Only those whose names begin so.
    pub(crate) prefix: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Those behind this one.
    #[arg(long, value_name = "NAME")]
    pub(crate) after: Option<String>,
}

/// `lease run`.
///
/// The command finds the lease's name in INTERLOCK_LEASE and its fencing token in INTERLOCK_FENCING_TOKEN. It runs
/// in a process group of its own, so that what it starts is stopped with it, and gets every signal that this process
/// gets. The lease is renewed each third of its time to live. Once it is lost, or two thirds are over without a
/// renewal that is known to be written, the command gets SIGTERM, then SIGKILL: before the lease could be somebody
/// else's. A second process does the last if this one was killed, or stands still.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The lease.
    pub(crate) lease: LeaseName,
    /// On what terms.
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// How long the command has between SIGTERM and SIGKILL; less if the lease would be over by then.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) grace: String,
    /// The command and its arguments. Its exit code is this one's; 124 says that the lease was lost.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
