//! What the figures were measured on: a number without its machine says nothing.

use anyhow::{Result, bail};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Linux counts processor time in hundredths of a second (USER_HZ).
const TICK_MS: u64 = 10;

/// Processes that ran or waited for the disk in the last minute: above this, somebody else is at work.
const LOAD_QUIET: f64 = 0.5;

/// A processor, a file system, a compiler, a commit.
#[derive(Debug, Serialize)]
pub(crate) struct Hardware {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) filesystem: String,
    /// What else ran in the minute before: figures of a busy machine are those of its other work.
    pub(crate) load_before: f64,
    pub(crate) date: String,
    pub(crate) rustc: String,
    pub(crate) commit: String,
}

impl Hardware {
    /// Of this machine, with files in `dir`.
    ///
    /// # Errors
    /// If `dir` is in memory: a sync there costs nothing, and nothing measured with it means anything.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let filesystem = filesystem(dir);
        if ["tmpfs", "ramfs"].iter().any(|memory| filesystem.starts_with(memory)) {
            bail!("{} is on {filesystem}, where a sync costs nothing: choose another with --dir", dir.display());
        }
        let changed = !ask("git", &["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default().is_empty();
        let commit = ask("git", &["rev-parse", "--short", "HEAD"]);
        Ok(Self {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            filesystem,
            load_before: load(),
            date: ask("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]).unwrap_or_else(unknown),
            rustc: ask("rustc", &["--version"]).unwrap_or_else(unknown),
            commit: commit.map_or_else(
                unknown,
                |commit| {
                    if changed { format!("{commit} with local changes") } else { commit }
                },
            ),
        })
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} cores, {} MiB, Linux {}", self.processor, self.cores, self.memory_mib, self.kernel)?;
        writeln!(f, "files on {}, load before this run {:.1}", self.filesystem, self.load_before)?;
        if self.load_before > LOAD_QUIET {
            writeln!(f, "this machine is busy with something else: no figure below says much")?;
        }
        write!(f, "{}, commit {}, {}", self.rustc, self.commit, self.date)
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The value of the first line `name: value` of a file.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    found.map_or_else(unknown, |value| value.trim().to_owned())
}

/// Type and device of the file system that `dir` is on: the longest mount point above it.
fn filesystem(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
        dir.starts_with(point).then(|| (point.len(), format!("{kind} ({device})")))
    });
    found.max_by_key(|(length, _)| *length).map_or_else(unknown, |(_, found)| found)
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn ask(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Resident memory of this process, in KiB.
pub(crate) fn resident_kib() -> u64 {
    let text = field("/proc/self/status", "VmRSS");
    text.trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Resident memory of this process, in KiB, where a page that is mapped several times counts once (proc_pid_smaps(5)).
pub(crate) fn proportional_kib() -> Option<u64> {
    field("/proc/self/smaps_rollup", "Pss").trim_end_matches(" kB").parse().ok()
}

/// Processor time of all threads of this process. It says what work costs even while other processes
/// share the machine.
pub(crate) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything up to the last parenthesis; proc_pid_stat(5).
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * TICK_MS)
}
