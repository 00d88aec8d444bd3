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

    fn lease_token(&mut self, _lease: Resource<Lease>) -> wasmtime::Result<u64> {
        Err(Stopped::NoLease.into())
    }

    fn still_holds_lease(&mut self, _lease: Resource<Lease>) -> wasmtime::Result<bool> {
        Err(Stopped::NoLease.into())
    }
}
