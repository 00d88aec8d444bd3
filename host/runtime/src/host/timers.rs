//! `timers`: staged on the entity's handle, carried by its next commit.

use crate::bindings::interlock::step::timers as wit;
use crate::guest::{Entity, Guest, Refusal};
use interlock_kernel::command::StagedDue;
use interlock_kernel::time::WallTime;
use wasmtime::component::Resource;

impl wit::Host for Guest {
    fn after(&mut self, _entity: Resource<Entity>, name: String, ms: u64) -> Result<(), Refusal> {
        Ok(self.handle.stage_timer(&name, StagedDue::After(ms))?)
    }

    fn at(&mut self, _entity: Resource<Entity>, name: String, unix_ms: i64) -> Result<(), Refusal> {
        Ok(self.handle.stage_timer(&name, StagedDue::At(WallTime(unix_ms)))?)
    }

    fn cancel(&mut self, _entity: Resource<Entity>, name: String) -> Result<(), Refusal> {
        Ok(self.handle.stage_timer(&name, StagedDue::Cancelled)?)
    }
}
