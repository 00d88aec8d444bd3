//! `transition`: the entity, and the one thing a step can do to the world.

use super::types::{Asked, change};
use crate::bindings::interlock::step::transition as wit;
use crate::guest::{Entity, Guest, Refusal, View};
use crate::stopped::Stopped;
use interlock_coordinator::{Snapshot, SubmitError};
use interlock_kernel::doc::Doc;
use interlock_kernel::ids::{BadName, Name};
use interlock_kernel::rejection::{Code, Rejection};
use wasmtime::component::Resource;

impl wit::Host for Guest {}

impl wit::HostEntity for Guest {
    fn id(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        self.pass()?;
        Ok(self.attempt.start().claim.execution.entity.to_string())
    }

    fn key(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        self.pass()?;
        Ok(self.attempt.start().claim.execution.entity.key.to_string())
    }

    fn execution(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        self.pass()?;
        Ok(self.attempt.start().claim.execution.to_string())
    }

    fn attempt(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u32> {
        self.pass()?;
        Ok(self.attempt.start().claim.attempt)
    }

    fn state(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<String> {
        self.pass()?;
        Ok(self.view.state.to_string())
    }

    fn version(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u64> {
        self.pass()?;
        Ok(self.view.version.get())
    }

    fn desired(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        self.pass()?;
        Ok(text(self.view.documents.desired.as_ref()))
    }

    fn data(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        self.pass()?;
        Ok(text(self.view.documents.data.as_ref()))
    }

    fn outputs(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Option<String>> {
        self.pass()?;
        Ok(text(self.view.documents.outputs.as_ref()))
    }

    fn cancel_requested(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<bool> {
        self.pass()?;
        // No command asks for it in this release.
        Ok(false)
    }

    fn deadline_ms(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<u64> {
        self.pass()?;
        Ok(self.attempt.left_ms())
    }

    async fn reload(&mut self, _entity: Resource<Entity>) -> Result<(), Refusal> {
        self.may_ask()?;
        self.count_reload()?;
        self.look_again().await.map_err(|error| self.refuse_submit(error))
    }

    async fn save(&mut self, _entity: Resource<Entity>, checkpoint: wit::Checkpoint) -> Result<(), Refusal> {
        self.may_ask()?;
        let wit::Checkpoint { data, outputs, set, conditions } = checkpoint;
        let change = change(Asked { data, outputs, set, conditions }).map_err(|no| self.refuse(no))?;
        let asked = self.engines.uptime();
        let version = self.attempt.save(change).await;
        self.waited_since(asked);
        self.view.version = version.map_err(|error| self.refuse_submit(error))?;
        if let Some(wasi) = &self.wasi {
            wasi.reseed(self.attempt.seed());
        }
        // It is on record: whatever goes wrong from here on is no refusal of it.
        match self.look_again().await {
            Ok(()) => Ok(()),
            Err(SubmitError::Rejected(no)) if no.code == Code::Fenced => {
                self.rights.lose();
                Ok(())
            }
            Err(error) => Err(Stopped::Unavailable(error.to_string()).into()),
        }
    }

    async fn transition(&mut self, _entity: Resource<Entity>, asked: wit::Change) -> Result<(), Refusal> {
        self.may_ask()?;
        let wit::Change { to, data, outputs, set, conditions } = asked;
        let to: Name = to.parse().map_err(|bad| self.refuse(no_state(&bad)))?;
        let change = change(Asked { data, outputs, set, conditions }).map_err(|no| self.refuse(no))?;
        let began = self.engines.uptime();
        let moved = self.attempt.transition(to, change).await;
        self.waited_since(began);
        moved.map_err(|error| self.refuse_submit(error))?;
        self.rights.spend();
        Ok(())
    }

    fn drop(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl Guest {
    /// The guest's snapshot becomes what is there now.
    async fn look_again(&mut self) -> Result<(), SubmitError> {
        let asked = self.engines.uptime();
        let read = self.attempt.reload().await;
        self.waited_since(asked);
        let Snapshot { state, version, documents, deadline: _ } = read?;
        self.view = View { state, version, documents };
        Ok(())
    }
}

fn text(document: Option<&Doc>) -> Option<String> {
    document.map(|doc| doc.text().to_owned())
}

/// What is no name is no declared state either.
fn no_state(bad: &BadName) -> Rejection {
    Rejection::new(Code::NotAllowed, "to", "a declared state", bad)
}
