//! Every bound of the kernel, named once, with why it is that number.

/// A key of an entity, in bytes. Long enough for a URN, short enough to repeat in every index entry.
pub const KEY_BYTES_MAX: usize = 200;
/// A machine's, state's, event's, step's or timer's name, in bytes.
pub const NAME_BYTES_MAX: usize = 63;
/// An event id, in bytes: clients send UUIDs, URNs and message ids of other systems.
pub const EVENT_ID_BYTES_MAX: usize = 200;
/// A document (desired, data, outputs, payload), in bytes of its canonical text: the store's value limit
/// less room for the record around it.
pub const DOCUMENT_BYTES_MAX: usize = 256 * 1024 - 4 * 1024;
/// Events waiting for one entity. More than this is a queue in the wrong place.
pub const INBOX_MAX: u32 = 32;
/// Saves in one visit: a checkpoint every second for a quarter of an hour.
pub const SAVES_MAX: u32 = 1_000;
/// Facts of one kind recorded for one entity; further ones are only counted, so that a
/// client that is refused a million times does not fill the disk.
pub const FACTS_MAX: u32 = 100;
/// A changed document up to this size stands in the history entry itself; its digest always does.
pub const INLINE_BYTES_MAX: usize = 1024;
/// Attempts of one visit lost with their host before it is parked as `crash-loop`.
pub const LOST_MAX: u32 = 10;
/// The longest wait between attempts lost with their host, in ms.
pub const LOST_WAIT_MS_MAX: u64 = 60_000;
/// Labels of an entity or a machine.
pub const LABELS_MAX: usize = 32;
/// A label's name or value, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Conditions an entity publishes.
pub const CONDITIONS_MAX: usize = 32;
/// A condition's field, in bytes.
pub const CONDITION_BYTES_MAX: usize = 1024;
/// Mutations in one change.
pub const MUTATIONS_MAX: usize = 64;
/// Elements of an array that `append` keeps at most, and keeps when it names no bound of its own.
pub const APPEND_MAX: usize = 1_000;
/// Refused calls in one attempt; the next call traps.
pub const REFUSALS_MAX: u32 = 16;
/// Reasons, codes and messages a step or client hands in, in bytes; longer ones are cut, not refused.
pub const TEXT_BYTES_MAX: usize = 1024;
/// The shortest and longest time an event id is remembered, and the default, in ms.
pub const DEDUP_MS_MIN: u64 = 60_000;
/// See [`DEDUP_MS_MIN`].
pub const DEDUP_MS_MAX: u64 = 30 * 86_400_000;
/// See [`DEDUP_MS_MIN`].
pub const DEDUP_MS_DEFAULT: u64 = 86_400_000;
/// How long an attempt may be without progress when its state does not say, in ms.
pub const IDLE_MS_DEFAULT: u64 = 30_000;
/// How long an attempt may take in all when its state does not say, in ms.
pub const TOTAL_MS_DEFAULT: u64 = 600_000;
/// Transitions in a row without a wait when the machine does not say; then parked as `runaway`.
pub const CHAIN_DEFAULT: u32 = 100;
/// How long history is kept when the machine does not say, in ms.
pub const HISTORY_MS_DEFAULT: u64 = 90 * 86_400_000;
/// The longest pause a step may ask for before its next attempt, in ms.
pub const RETRY_AFTER_MS_MAX: u64 = 86_400_000;
/// What a refused caller is told to wait when nothing better is known, in ms.
pub const BUSY_RETRY_MS: u64 = 1_000;
/// Expired records removed by one `Sweep`.
pub const SWEEP_MAX: usize = 256;
/// Old history entries removed with one new entry.
pub const TRIM_MAX: u64 = 32;
/// Timers that one save or transition sets or takes back.
pub const STAGED_TIMERS_MAX: usize = 16;
/// How far ahead a step may set a timer, in ms: ten years, as a manifest may.
pub const TIMER_MS_MAX: u64 = 3_660 * 86_400_000;
/// What made a timer due, as it is stored with it, in bytes; a longer path is cut.
pub const RULE_BYTES_MAX: usize = 256;
/// The soonest that an instant which is past is due in a visit that a timer entered, in ms: such visits may follow
/// each other for ever, and nothing else would hold them up.
pub const RING_MS_MIN: u64 = 1_000;
/// Nesting of a document; serde_json's own bound.
pub const DEPTH_MAX: usize = 127;
/// The shortest time to live of a lease, in ms: below it a slow commit is a loss.
pub const LEASE_TTL_MS_MIN: u64 = 1_000;
/// The longest, in ms: whoever vanished keeps others out for that long.
pub const LEASE_TTL_MS_MAX: u64 = 3_600_000;
/// The time to live when nobody says, in ms.
pub const LEASE_TTL_MS_DEFAULT: u64 = 30_000;
/// The longest a lease is held however often it is renewed, in ms.
pub const LEASE_HOLD_MS_MAX: u64 = 30 * 86_400_000;
/// The same when nobody says.
pub const LEASE_HOLD_MS_DEFAULT: u64 = 86_400_000;
/// The longest time after a loss in which only the former owner may take a lease, in ms.
pub const LEASE_DELAY_MS_MAX: u64 = 600_000;
/// Owners in line for one lease.
pub const LEASE_LINE_MAX: usize = 64;
/// The longest a client stands in line, in ms.
pub const LEASE_WAIT_MS_MAX: u64 = 300_000;
/// Leases that one execution has at a time.
pub const LEASES_MAX: usize = 8;
/// Entries kept of what became of one lease.
pub const LEASE_ENTRIES_MAX: u64 = 64;
/// How long a lease that nobody has or wants is remembered, in ms of store time.
pub const LEASE_KEPT_MS: u64 = 86_400_000;
/// An attempt is handed out only with this much of its leases left besides the renewal interval, in ms.
pub const LEASE_MARGIN_MS: u64 = 500;
/// Effects of one commit.
pub const EFFECTS_STAGED_MAX: usize = 16;
/// Unsettled effects of one lane: an entity and what its effects are fenced by.
pub const LANE_MAX: usize = 32;
/// Unsettled effects of one entity, dead ones included.
pub const EFFECTS_MAX: u32 = 64;
/// What a step hands over for one effect besides its body, in bytes.
pub const EFFECT_BYTES_MAX: usize = 16 * 1024;
/// Headers that a step adds to one effect.
pub const EFFECT_HEADERS_MAX: usize = 16;
/// An answer's body that is kept, in bytes.
pub const ANSWER_BYTES_MAX: u64 = 64 * 1024;
/// How long one try may take when its target does not say, in ms.
pub const EFFECT_TIMEOUT_MS_DEFAULT: u64 = 10_000;
/// The longest one try may take, in ms.
pub const EFFECT_TIMEOUT_MS_MAX: u64 = 120_000;
/// The longest pause that a target may ask for, in ms.
pub const EFFECT_RETRY_AFTER_MS_MAX: u64 = 3_600_000;
/// Operations of one request on rows, or of one commit.
pub const ROW_OPS_MAX: usize = 64;
/// Conditions of one request on rows, or of one commit.
pub const REQUIRES_MAX: usize = 32;
/// Rows that one claim takes, or one query shows.
pub const ROWS_MAX: u32 = 1_000;
/// Rows that one claim takes when it does not say.
pub const CLAIM_DEFAULT: u32 = 10;
/// Rows that one claim or query looks at before it asks for an index.
pub const ROWS_SCANNED_MAX: usize = 10_000;
/// Values that one claim or query answers with, in bytes; there is more if it is cut.
pub const ROWS_BYTES_MAX: usize = 1024 * 1024;
/// The same where the answer is remembered as it is: it stands in one record.
pub const MEMO_BYTES_MAX: usize = 192 * 1024;
/// Writes of one request on rows: the store's bound less room for what else the transaction writes.
pub const ROW_WRITES_MAX: usize = 7_000;
/// Values that one request on rows writes, in bytes: the store's bound less room for what else the transaction writes.
pub const ROW_WRITTEN_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Requests on rows that are remembered for one visit, since its entry or last save.
pub const MEMOS_MAX: u32 = 64;
/// How long a client's request on rows is remembered under its id, in ms.
pub const ANSWER_MS: u64 = 86_400_000;
/// Comparisons of one filter.
pub const COMPARISONS_MAX: usize = 256;
/// Indexes of one table.
pub const INDEXES_MAX: usize = 8;
/// Fields of one index.
pub const INDEX_FIELDS_MAX: usize = 4;
/// Bytes of a text that an index orders by; what is the same up to here is ordered as it was inserted.
pub const INDEX_TEXT_BYTES_MAX: usize = 256;
/// Entries kept of what became of one table's rows.
pub const ROW_ENTRIES_MAX: u64 = 1_024;
/// Keys that one such entry names.
pub const ROW_ENTRY_KEYS_MAX: usize = 32;
/// What is kept of the last due times of one schedule.
pub const FIRINGS_MAX: usize = 32;
/// A due time that is looked at within this time is on time, in ms: nothing was missed.
pub const ON_TIME_MS: u64 = 60_000;
/// Rows that one decision of the host's own looks at: building an index, dropping a table, taking claims back.
pub const TEND_MAX: usize = 256;
/// The shortest and longest time to live of a row, and age at which a claim is stale, in ms.
pub const ROW_MS_MIN: u64 = 1_000;
/// See [`ROW_MS_MIN`].
pub const ROW_MS_MAX: u64 = 366 * 86_400_000;
