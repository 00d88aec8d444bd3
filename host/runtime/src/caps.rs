//! What a guest may take of this machine's memory.

use crate::engine::Place;
use crate::limits::{
    CORE_INSTANCES_MAX, CORE_INSTANCES_MAX_ON_DEMAND, TABLE_ELEMENTS_MAX, TABLE_ELEMENTS_MAX_ON_DEMAND, TABLES_MAX,
    TABLES_MAX_ON_DEMAND,
};
use crate::stopped::Stopped;
use crate::weights::table_bytes;
use wasmtime::ResourceLimiter;

/// The caps of one store. Wanting more ends the attempt with the reason, rather than with whatever a
/// guest makes of an allocation that failed.
pub(crate) struct Caps {
    memory_bytes: u64,
    table_elements: usize,
    tables: u32,
    instances: u32,
    /// The most that its memory and its tables were, in bytes.
    memory_peak: u64,
    tables_peak: u64,
}

impl Caps {
    pub(crate) fn new(memory_bytes: u64, place: Place) -> Self {
        let (table_elements, tables, instances) = match place {
            Place::Pooled => (TABLE_ELEMENTS_MAX, TABLES_MAX, CORE_INSTANCES_MAX),
            Place::OnDemand => (TABLE_ELEMENTS_MAX_ON_DEMAND, TABLES_MAX_ON_DEMAND, CORE_INSTANCES_MAX_ON_DEMAND),
        };
        Self { memory_bytes, table_elements, tables, instances, memory_peak: 0, tables_peak: 0 }
    }

    /// The most that its guest took, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory_peak.saturating_add(self.tables_peak)
    }
}

impl ResourceLimiter for Caps {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // A module's own maximum is its own business: growing past that answers -1, as it should.
        let wanted = u64::try_from(desired).unwrap_or(u64::MAX);
        if wanted > self.memory_bytes {
            return Err(Stopped::Memory { cap: self.memory_bytes, wanted }.into());
        }
        self.memory_peak = self.memory_peak.max(wanted);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_elements {
            return Err(Stopped::Table { cap: self.table_elements, wanted: desired }.into());
        }
        let more = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        self.tables_peak = self.tables_peak.saturating_add(table_bytes(more));
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances as usize
    }

    fn tables(&self) -> usize {
        self.tables as usize
    }

    fn memories(&self) -> usize {
        1
    }
}
