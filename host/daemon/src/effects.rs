//! Effects over HTTP: what the outbox hands out as requests, and what comes of them as results.
//!
//! Decides neither when nor in which order nor how often: that is the kernel's. Where requests may go is the
//! operator's configuration ([`Configuration`]), and `interlock_courier` is the one that goes there.

mod admission;
mod carrier;
mod configuration;
mod outbound;
mod result;

pub use admission::not_admitted;
pub(crate) use carrier::Carrier;
pub use configuration::Configuration;

#[cfg(test)]
mod tests {
    use interlock_kernel::machine::{Machine, OnLate, Retry, Target};
    use interlock_kernel::time::WallTime;

    /// A small machine, without targets.
    pub(super) fn machine() -> Result<Machine, Box<dyn std::error::Error>> {
        let text = "machine = \"m\"\nowner = \"o\"\ninitial = \"r\"\n[states.r]\nkind = \"rest\"\n";
        let report = interlock_manifest::parse_as_of(WallTime(0), "machine.toml", text);
        Ok(report.manifest.ok_or_else(|| format!("{:?}", report.problems))?.machine)
    }

    /// A target that is posted to.
    pub(super) fn target(url: &str) -> Target {
        Target {
            method: "POST".to_owned(),
            url: url.to_owned(),
            timeout_ms: 1_000,
            retry: Retry { attempts: 3, first_ms: 10, factor: 2.0, max_ms: 1_000, jitter: 0.0 },
            secret: None,
            fence: None,
            on_late: OnLate::Record,
            skips_dead: false,
            answer_bytes_max: 1_000,
        }
    }
}
