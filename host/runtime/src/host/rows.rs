//! `rows`: tables that entities and clients share.

use super::row_types::{
    answer, claimed, claiming, deleted, deleting, entity_requirement, getting, got, operation, page, putting, querying,
    requirement, row_requirement, updated, updating, upserting, written,
};
use super::types::strange;
use crate::bindings::interlock::step::rows as wit;
use crate::guest::{Entity, Guest, Refusal};
use crate::stopped::Stopped;
use interlock_coordinator::contract::{Operation, Requirement};
use interlock_kernel::rows::RowAnswer;
use wasmtime::component::Resource;

impl Guest {
    async fn ask_rows(
        &mut self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<String>,
    ) -> Result<Vec<RowAnswer>, Refusal> {
        let wanted = self.handle.rows_wanted(operations, requirements, op)?;
        let asked = self.engines.uptime();
        let done = self.handle.rows(wanted).await;
        self.waited_since(asked);
        Ok(done?.0)
    }

    /// One operation, at once: its answer.
    async fn ask_row(&mut self, operation: Operation, op: Option<String>) -> Result<wit::Answer, Refusal> {
        let answers = self.ask_rows(vec![operation], Vec::new(), op).await?;
        answers.into_iter().next().map(answer).ok_or_else(|| strange("an answer to one operation", "none"))
    }
}

impl wit::Host for Guest {
    async fn get(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Getting,
    ) -> Result<wit::Got, Refusal> {
        got(self.ask_row(getting(table, asked), None).await?)
    }

    async fn query(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Querying,
    ) -> Result<wit::Page, Refusal> {
        let wanted = self.handle.query_wanted(querying(table, asked))?;
        let asked = self.engines.uptime();
        let found = self.handle.query(wanted).await;
        self.waited_since(asked);
        Ok(page(found?))
    }

    async fn put(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Putting,
        op: Option<String>,
    ) -> Result<wit::Written, Refusal> {
        written(self.ask_row(putting(table, asked), op).await?)
    }

    async fn update(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Updating,
        op: Option<String>,
    ) -> Result<wit::Updated, Refusal> {
        updated(self.ask_row(updating(table, asked), op).await?)
    }

    async fn upsert(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Upserting,
        op: Option<String>,
    ) -> Result<wit::Written, Refusal> {
        written(self.ask_row(upserting(table, asked), op).await?)
    }

    async fn claim(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Claiming,
        op: Option<String>,
    ) -> Result<wit::Claimed, Refusal> {
        claimed(self.ask_row(claiming(table, asked), op).await?)
    }

    async fn delete(
        &mut self,
        _entity: Resource<Entity>,
        table: String,
        asked: wit::Deleting,
        op: Option<String>,
    ) -> Result<wit::Deleted, Refusal> {
        deleted(self.ask_row(deleting(table, asked), op).await?)
    }

    async fn transact(
        &mut self,
        _entity: Resource<Entity>,
        operations: Vec<wit::Operation>,
        requirements: Vec<wit::Requirement>,
        op: Option<String>,
    ) -> Result<Vec<wit::Answer>, Refusal> {
        let operations = operations.into_iter().map(operation).collect();
        let requirements = requirements.into_iter().map(requirement).collect();
        Ok(self.ask_rows(operations, requirements, op).await?.into_iter().map(answer).collect())
    }

    fn stage(&mut self, _entity: Resource<Entity>, staged: wit::Operation) -> Result<(), Refusal> {
        Ok(self.handle.stage_row(operation(staged))?)
    }

    fn require_row(&mut self, _entity: Resource<Entity>, required: wit::RowRequirement) -> Result<(), Refusal> {
        Ok(self.handle.stage_requirement(row_requirement(required))?)
    }

    fn require_entity(&mut self, _entity: Resource<Entity>, required: wit::EntityRequirement) -> Result<(), Refusal> {
        Ok(self.handle.stage_requirement(entity_requirement(required))?)
    }

    fn answers(&mut self, _entity: Resource<Entity>) -> wasmtime::Result<Vec<wit::Answer>> {
        let answers = self.handle.row_answers().map_err(Stopped::from)?;
        Ok(answers.into_iter().map(answer).collect())
    }
}
