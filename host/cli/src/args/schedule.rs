//! `schedule`.

use clap::{Args, Subcommand};
use interlock_kernel::ids::ScheduleName;
use std::path::PathBuf;

/// `schedule`.
#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// Declares schedules, or declares them anew: from now on, not for what is past.
    Create(ScheduleDeclare),
    /// Schedules by name, with when each comes next.
    List(ScheduleList),
    /// One schedule: when it comes next, and what became of its last due times.
    Show {
        /// Its name.
        schedule: ScheduleName,
        /// Prints the declaration in force only.
        #[arg(long)]
        manifest: bool,
    },
    /// Has a schedule stand still.
    Pause {
        /// Its name.
        schedule: ScheduleName,
    },
    /// Has a schedule go on, with the next due time from now.
    Resume {
        /// Its name.
        schedule: ScheduleName,
    },
    /// Drops a schedule; what it raised stays.
    Drop {
        /// Its name.
        schedule: ScheduleName,
    },
}

/// `schedule create`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleDeclare {
    /// Manifests of schedules (NAME.schedule.toml), or folders with some.
    #[arg(required = true, value_name = "FOLDER|FILE")]
    pub(crate) paths: Vec<PathBuf>,
    /// Says whether they are sound, and when they would come; changes nothing.
    #[arg(long)]
    pub(crate) check_only: bool,
}

/// `schedule list`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleList {
    /// At most this many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(crate) limit: usize,
    /// Those behind this one.
    #[arg(long, value_name = "NAME")]
    pub(crate) after: Option<String>,
}
