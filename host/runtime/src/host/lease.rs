//! `lease`: named exclusive rights of the execution.

use crate::bindings::interlock::step::lease as wit;
use crate::guest::{Entity, Guest, Lease, Refusal};
use crate::stopped::Stopped;
use wasmtime::component::Resource;

impl wit::Host for Guest {
    async fn acquire(
        &mut self,
        _entity: Resource<Entity>,
        name: String,
        ttl_ms: Option<u64>,
    ) -> Result<Resource<Lease>, Refusal> {
        let wanted = self.handle.wanted(&name, ttl_ms)?;
        let asked = self.engines.uptime();
        let held = self.handle.acquire(wanted).await;
        self.waited_since(asked);
        self.table.push(Lease(held?)).map_err(|full| Refusal::Trap(full.into()))
    }
}

impl wit::HostLease for Guest {
    fn name(&mut self, lease: Resource<Lease>) -> wasmtime::Result<String> {
        self.pass()?;
        Ok(self.table.get(&lease)?.0.claim.lease.to_string())
    }

    fn left_ms(&mut self, lease: Resource<Lease>) -> wasmtime::Result<u64> {
        let Lease(held) = self.table.get(&lease)?;
        Ok(self.handle.lease_left_ms(held).map_err(Stopped::from)?)
    }

    async fn extend(&mut self, lease: Resource<Lease>, ttl_ms: Option<u64>) -> Result<(), Refusal> {
        let Lease(held) = self.table.get(&lease).map_err(|unknown| Refusal::Trap(unknown.into()))?;
        let held = held.clone();
        let asked = self.engines.uptime();
        let extended = self.handle.extend(&held, ttl_ms).await;
        self.waited_since(asked);
        let Lease(held) = self.table.get_mut(&lease).map_err(|unknown| Refusal::Trap(unknown.into()))?;
        *held = extended?;
        Ok(())
    }

    async fn release(&mut self, lease: Resource<Lease>) -> Result<(), Refusal> {
        let Lease(held) = self.table.delete(lease).map_err(|unknown| Refusal::Trap(unknown.into()))?;
        let asked = self.engines.uptime();
        let released = self.handle.release(held).await;
        self.waited_since(asked);
        Ok(released?)
    }

    fn drop(&mut self, lease: Resource<Lease>) -> wasmtime::Result<()> {
        self.table.delete(lease)?;
        Ok(())
    }
}
