//! `effects`: staged on the entity's handle, carried by its next commit, made by the host.

use crate::bindings::interlock::step::effects as wit;
use crate::guest::{Entity, Guest, Refusal};
use interlock_coordinator::contract::Asked;
use wasmtime::component::Resource;

impl wit::Host for Guest {
    fn request(&mut self, _entity: Resource<Entity>, outbound: wit::Outbound) -> Result<(), Refusal> {
        let wit::Outbound { target, params, headers, body } = outbound;
        Ok(self.handle.stage_effect(Asked { target, params, headers, body })?)
    }
}
