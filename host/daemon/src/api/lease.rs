//! Leases: taking, renewing and giving back, and who has what.

use super::LeaseEntryView;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A request for a lease.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireRequest {
    /// It is over after this long without a renewal, such as `30s`: 1 s to 1 h, 30 s if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// The longest in all, however often it is renewed: at most 30 d, 1 d if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_max: Option<String>,
    /// After a loss only the same grant may take it for this long: at most 10 m, none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_delay: Option<String>,
    /// What people are shown as its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it will be held under, 1 to 200 bytes: a secret of the client's, random. The host mints one if
    /// there is none. The same grant again renews what it has, so a lost answer can be asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// A renewal.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// What it is held under.
    pub grant: String,
    /// The token that the grant came with.
    pub token: u64,
    /// Another time to live; the one it was granted with if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// A lease given back.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What it is held under.
    pub grant: String,
    /// The token that the grant came with.
    pub token: u64,
}

/// A lease is held.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct LeaseHeld {
    /// The lease.
    pub lease: String,
    /// What it is held under: to be kept secret, nobody is told it again. Null in the answer to a renewal.
    pub grant: Option<String>,
    /// Its fencing token: higher than that of every grant before it. Pass it on with whatever the lease protects.
    pub token: u64,
    /// How long it is held from the commit on, in ms. Count it from before the request was sent.
    pub ttl_ms: u64,
    /// It is over then, by the host's clock, unless it is renewed.
    pub until: String,
    /// Whether this request granted it; it was renewed otherwise.
    pub new: bool,
}

/// A lease is free again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseReleased {
    /// The lease.
    pub lease: String,
    /// The token that is over.
    pub token: u64,
}

/// One lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseView {
    /// The lease.
    pub lease: String,
    /// Who has it; null if it is free.
    pub holder: Option<LeaseHolderView>,
    /// Set after a loss: until then only its former owner may take it.
    pub delay: Option<LeaseDelayView>,
    /// Who is next, first come first served.
    pub line: Vec<LeaseWaiterView>,
    /// What became of it, newest first.
    pub entries: Vec<LeaseEntryView>,
}

/// Who has a lease, and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseHolderView {
    /// The execution, or what its client calls itself.
    pub owner: String,
    /// Whether that is an execution.
    pub execution: bool,
    /// The fencing token.
    pub token: u64,
    /// When it was granted.
    pub since: String,
    /// When it was last renewed.
    pub renewed: String,
    /// It is over then, unless it is renewed.
    pub until: String,
    /// However often it is renewed.
    pub hold_until: String,
    /// At least this long without a renewal, in ms.
    pub ttl_ms: u64,
}

/// The time after a loss.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseDelayView {
    /// The former owner.
    pub owner: String,
    /// Until then.
    pub until: String,
}

/// Somebody in line.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseWaiterView {
    /// The execution, or what the client calls itself.
    pub owner: String,
    /// Since when.
    pub since: String,
    /// A client's patience; null for an execution.
    pub until: Option<String>,
}

/// One page of leases, ordered by name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeasePage {
    /// At most `limit` of them.
    pub leases: Vec<LeaseSummary>,
    /// Pass this as `after` for the next page; null at the end.
    pub next: Option<String>,
}

/// A lease in a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseSummary {
    /// The lease.
    pub lease: String,
    /// Who has it; null if it is free.
    pub holder: Option<LeaseHolderView>,
    /// How many stand in line.
    pub in_line: usize,
}

/// Who has a lease or is before the caller in line, in a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseBusyView {
    /// The execution, or what its client calls itself; null if it is free for others only.
    pub owner: Option<String>,
    /// The holder's token.
    pub token: Option<u64>,
    /// Since when it is held.
    pub since: Option<String>,
    /// When it was last renewed.
    pub renewed: Option<String>,
    /// It is held, or kept for its former owner, for this long without a renewal, in ms.
    pub left_ms: Option<u64>,
    /// How many stand in line.
    pub in_line: u64,
}

/// Said instead of a grant wherever one would be printed.
struct Secret;

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("secret")
    }
}

impl fmt::Debug for AcquireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grant = self.grant.as_ref().map(|_| Secret);
        f.debug_struct("AcquireRequest")
            .field("ttl", &self.ttl)
            .field("hold_max", &self.hold_max)
            .field("lock_delay", &self.lock_delay)
            .field("label", &self.label)
            .field("grant", &grant)
            .finish()
    }
}

impl fmt::Debug for ExtendRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (token, ttl) = (&self.token, &self.ttl);
        f.debug_struct("ExtendRequest").field("grant", &Secret).field("token", token).field("ttl", ttl).finish()
    }
}

impl fmt::Debug for ReleaseRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseRequest").field("grant", &Secret).field("token", &self.token).finish()
    }
}

impl fmt::Debug for LeaseHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseHeld")
            .field("lease", &self.lease)
            .field("grant", &self.grant.as_ref().map(|_| Secret))
            .field("token", &self.token)
            .field("ttl_ms", &self.ttl_ms)
            .field("until", &self.until)
            .field("new", &self.new)
            .finish()
    }
}
