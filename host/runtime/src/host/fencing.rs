//! `fencing`: the token to carry outside, and whether it still holds.

use crate::bindings::interlock::step::fencing as wit;
use crate::guest::{Entity, Guest, Lease};
use crate::stopped::Stopped;
use wasmtime::component::Resource;

impl wit::Host for Guest {
    fn token(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u64> {
        Ok(self.handle.token().map_err(Stopped::from)?)
    }

    async fn still_holds(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<bool> {
        let asked = self.engines.uptime();
        let holds = self.handle.still_holds().await;
        self.waited_since(asked);
        Ok(holds.map_err(Stopped::from)?)
    }

    fn lease_token(&mut self, lease: Resource<Lease>) -> wasmtime::Result<u64> {
        let Lease(held) = self.table.get(&lease)?;
        Ok(self.handle.lease_token(held).map_err(Stopped::from)?)
    }

    async fn still_holds_lease(&mut self, lease: Resource<Lease>) -> wasmtime::Result<bool> {
        let held = self.table.get(&lease)?.0.clone();
        let asked = self.engines.uptime();
        let holds = self.handle.still_holds_lease(&held).await;
        self.waited_since(asked);
        Ok(holds.map_err(Stopped::from)?)
    }
}
