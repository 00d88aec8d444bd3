//! What a guest may take of this machine's memory.

use crate::engine::Place;
use crate::limits::{
    CORE_INSTANCES_MAX, CORE_INSTANCES_MAX_ON_DEMAND, TABLE_ELEMENTS_MAX, TABLE_ELEMENTS_MAX_ON_DEMAND, TABLES_MAX,
    TABLES_MAX_ON_DEMAND,
};
use crate::stopped::Stopped;
use wasmtime::ResourceLimiter;

/// The caps of one store. Wanting more ends the attempt with the reason, rather than with whatever a
/// guest makes of an allocation that failed.
pub(crate) struct Caps {
    memory_bytes: u64,
    table_elements: usize,
    tables: u32,
    instances: u32,
}

impl Caps {
    pub(crate) fn new(memory_bytes: u64, place: Place) -> Self {
        match place {
            Place::Pooled => Self {
                memory_bytes,
                table_elements: TABLE_ELEMENTS_MAX,
                tables: TABLES_MAX,
                instances: CORE_INSTANCES_MAX,
            },
            Place::OnDemand => Self {
                memory_bytes,
                table_elements: TABLE_ELEMENTS_MAX_ON_DEMAND,
                tables: TABLES_MAX_ON_DEMAND,
                instances: CORE_INSTANCES_MAX_ON_DEMAND,
            },
        }
    }
}

impl ResourceLimiter for Caps {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // A module's own maximum is its own business: growing past that answers -1, as it should.
        let wanted = u64::try_from(desired).unwrap_or(u64::MAX);
        if wanted > self.memory_bytes {
            return Err(Stopped::Memory { cap: self.memory_bytes, wanted }.into());
        }
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_elements {
            return Err(Stopped::Table { cap: self.table_elements, wanted: desired }.into());
        }
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
