//! Every bound of the sandbox, named once, with why it is that number. Those of the contract, which hold for
//! steps without a sandbox too, are in [`contract`](interlock_coordinator::contract).

/// Attempts that run at the same time when nothing else is said: enough to hide the wait for a durable
/// commit, and 258 GiB of address space reserved for their memories, of the 128 TiB there is.
pub const EXECUTIONS_MAX: u32 = 64;
/// Memory for steps that run at the same time when nothing else is said, in bytes: a quarter of the 4 GiB that small
/// servers have, of which the page cache and redb want their share. Each of them counts for the most that a run of
/// its component took; see [`LIGHT_BYTES`] for those that do not count.
pub const GUEST_MEMORY_BYTES: u64 = 1 << 30;
/// A component that takes no more than this is not weighed, its slot is enough, in bytes: each slot of the pool keeps
/// as much between runs, so having it wait would save nothing. In all slots together a quarter of
/// [`GUEST_MEMORY_BYTES`].
pub const LIGHT_BYTES: u64 = 4 << 20;
/// What a component counts for that no run or load has weighed yet, in bytes: CPython takes 13 MiB to do nothing, and its
/// packages want room.
pub const UNKNOWN_BYTES: u64 = 64 << 20;
/// Threads that run guests: two that loop leave the host's own threads alone.
pub const GUEST_THREADS: usize = 2;
/// How often a guest that computes without calling the host is looked at, in ms.
pub const EPOCH_TICK_MS: u64 = 10;

/// How long a guest may compute after its accepted transition, in ticks of the epoch: a second, of which
/// it needs nothing to return.
pub const AFTERWARDS_TICKS_MAX: u32 = 100;

/// Linear memory of a pooled component, in bytes. Above it, it runs on demand.
pub const POOL_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// Core modules in one component: CPython's has 14.
pub const CORE_INSTANCES_MAX: u32 = 32;
/// Tables in one component; what toolchains make has 2.
pub const TABLES_MAX: u32 = 4;
/// Elements of a table: JavaScript's engine needs 7,704, CPython's table grows from 5,686.
pub const TABLE_ELEMENTS_MAX: usize = 20_000;
/// The same without the pool: for compositions of many components, still within a few tens of MiB.
pub const CORE_INSTANCES_MAX_ON_DEMAND: u32 = 512;
/// See [`CORE_INSTANCES_MAX_ON_DEMAND`].
pub const TABLES_MAX_ON_DEMAND: u32 = 256;
/// See [`CORE_INSTANCES_MAX_ON_DEMAND`].
pub const TABLE_ELEMENTS_MAX_ON_DEMAND: usize = 1_000_000;
/// Stack of a guest, in bytes.
pub const GUEST_STACK_BYTES: usize = 1 << 20;
/// Stack of a fiber, in bytes: the guest's, and as much for the host functions that it calls.
pub const FIBER_STACK_BYTES: usize = 2 << 20;

/// What one call may hand the host, in bytes: a change with three documents, twice over.
pub const HOSTCALL_BYTES_MAX: usize = 8 << 20;
/// Handles a component may hold.
pub const HANDLES_MAX: usize = 10_000;
/// Host objects behind handles of one attempt: streams, pollables, the entity.
pub const RESOURCES_MAX: usize = 1_000;
/// Random bytes of one call.
pub const RANDOM_BYTES_MAX: u64 = 64 << 10;

/// What one write to standard output may hold, in bytes.
pub const OUTPUT_PERMIT_BYTES: usize = 64 << 10;

/// How much a guest's clock moves with each call to the host, in ns. A fixed step, not real time, or
/// an attempt could not be reproduced.
pub const CLOCK_STEP_NS: u64 = 1_000;

/// Frames of a guest's stack in a failure's reason: what stays readable within 1 KiB.
pub const FRAMES_MAX: usize = 8;

/// Components kept ready to run. Each maps its machine code; a store with more machines than this in
/// use at once loads the least used ones again from the cache.
pub const PREPARED_MAX: usize = 64;
/// A component file, in bytes: CPython's with a few packages is half of it.
pub const COMPONENT_BYTES_MAX: usize = 128 << 20;
