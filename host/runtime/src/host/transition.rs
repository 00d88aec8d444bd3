//! `transition`: the entity, and the one thing a step can do to the world.

use super::types::wish;
use crate::bindings::interlock::step::transition as wit;
use crate::guest::{Entity, Guest, Refusal};
use crate::stopped::Stopped;
use interlock_coordinator::contract;
use wasmtime::component::Resource;

impl wit::Host for Guest {}

impl wit::HostEntity for Guest {
    fn id(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        read(self.handle.id())
    }

    fn key(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        read(self.handle.key())
    }

    fn execution(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        read(self.handle.execution())
    }

    fn attempt(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u32> {
        read(self.handle.attempt())
    }

    fn state(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        read(self.handle.state())
    }

    fn version(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u64> {
        read(self.handle.version())
    }

    fn desired(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        read(self.handle.desired())
    }

    fn data(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        read(self.handle.data())
    }

    fn outputs(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        read(self.handle.outputs())
    }

    fn cancel_requested(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<bool> {
        read(self.handle.cancel_requested())
    }

    fn deadline_ms(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u64> {
        read(self.handle.deadline_ms())
    }

    async fn reload(&mut self, _entity: Resource<Entity>) -> Result<(), Refusal> {
        let asked = self.engines.uptime();
        let read = self.handle.reload().await;
        self.waited_since(asked);
        Ok(read?)
    }

    async fn save(&mut self, _entity: Resource<Entity>, checkpoint: wit::Checkpoint) -> Result<(), Refusal> {
        let wit::Checkpoint { data, outputs, set, conditions } = checkpoint;
        let checkpoint = self.handle.checkpoint(wish(data, outputs, set, conditions))?;
        let asked = self.engines.uptime();
        let saved = self.handle.save(checkpoint).await;
        self.waited_since(asked);
        if let (Ok(_), Some(wasi)) = (&saved, &self.wasi) {
            wasi.reseed(self.handle.running().seed());
        }
        Ok(saved.map(drop)?)
    }

    async fn transition(&mut self, _entity: Resource<Entity>, change: wit::Change) -> Result<(), Refusal> {
        let wit::Change { to, data, outputs, set, conditions } = change;
        let change = self.handle.change(&to, wish(data, outputs, set, conditions))?;
        let asked = self.engines.uptime();
        let moved = self.handle.transition(change).await;
        self.waited_since(asked);
        Ok(moved.map(drop)?)
    }

    fn drop(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<()> {
        Ok(())
    }
}

fn read<T>(value: Result<T, contract::Stopped>) -> wasmtime::Result<T> {
    value.map_err(|stopped| Stopped::from(stopped).into())
}
