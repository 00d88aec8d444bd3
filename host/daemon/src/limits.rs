//! Every bound of the HTTP API, named once, with why it is that number.

use std::time::Duration;

/// A request's body, in bytes: two documents at their own limit, escaped, and what stands around them.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// What is read and thrown away of a body past its limit, in bytes, so that its sender hears why before the
/// connection closes on it.
pub const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a body may take to arrive: the largest over a slow forward; what takes longer only holds its connection.
pub const BODY_WITHIN: Duration = Duration::from_secs(60);
/// A deploy's body, in bytes: the component at its limit in base64, and the manifest, escaped.
pub const DEPLOY_BODY_BYTES_MAX: usize = COMPONENT_BYTES_MAX / 3 * 4 + 8 * MANIFEST_BYTES_MAX;
/// A component, in bytes.
pub const COMPONENT_BYTES_MAX: usize = interlock_runtime::limits::COMPONENT_BYTES_MAX;
/// A manifest, in bytes: it is kept inside one record with the machine made from it.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;
/// Entities or entries in one page: what the coordinator reads in one snapshot.
pub const PAGE_MAX: usize = interlock_coordinator::PAGE_MAX;
/// Entities or entries in one page when the request does not say.
pub const PAGE_DEFAULT: usize = 100;
/// The longest `wait`: proxies and people give up sooner.
pub const WAIT_MAX: Duration = Duration::from_secs(300);
/// The longest `wait` for a lease: the kernel's own bound.
pub const LEASE_WAIT_MAX: Duration = Duration::from_millis(interlock_kernel::limits::LEASE_WAIT_MS_MAX);
/// Silence on a stream before a comment keeps it alive; below the 30 s that proxies allow.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a stop waits for what is running.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Entities named in a machine's list of those that do not follow its active revision.
pub const HELD_BACK_MAX: usize = 100;
/// A commit that took this long makes the store slow in the eyes of readiness.
pub const SLOW_COMMIT: Duration = Duration::from_secs(1);
/// How long a start looks at what the boot before left before it says how much that was.
pub const RECOVERY_LOOK: Duration = Duration::from_millis(100);
