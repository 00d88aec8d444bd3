//! `lease`: no machine is granted one in this release, so no handle of one exists.

use crate::bindings::interlock::step::lease as wit;
use crate::guest::{Entity, Guest, Lease, Refusal};
use crate::stopped::Stopped;
use interlock_kernel::rejection::{Code, Rejection};
use wasmtime::component::Resource;

impl wit::Host for Guest {
    fn acquire(
        &mut self,
        _entity: Resource<Entity>,
        name: String,
        _ttl_ms: Option<u64>,
    ) -> Result<Resource<Lease>, Refusal> {
        self.handle.may_ask()?;
        let got = "a machine without leases";
        let no = Rejection::new(Code::NotFound, name, "a lease granted to the machine", got);
        Err(self.handle.refuse(no).into())
    }
}

impl wit::HostLease for Guest {
    fn name(&mut self, _lease: Resource<Lease>) -> wasmtime::Result<String> {
        Err(Stopped::NoLease.into())
    }

    fn left_ms(&mut self, _lease: Resource<Lease>) -> wasmtime::Result<u64> {
        Err(Stopped::NoLease.into())
    }

    fn extend(&mut self, _lease: Resource<Lease>, _ttl_ms: Option<u64>) -> Result<(), Refusal> {
        Err(Stopped::NoLease.into())
    }

    fn release(&mut self, _lease: Resource<Lease>) -> Result<(), Refusal> {
        Err(Stopped::NoLease.into())
    }

    fn drop(&mut self, _lease: Resource<Lease>) -> wasmtime::Result<()> {
        Ok(())
    }
}
