//! What a step may ask of tables.

use super::row_words::{Operation, Question, Requirement, asked, question, required, staged};
use super::stopped::Stopped;
use super::{Handle, Refusal};
use interlock_kernel::doc::Digest;
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{MemoName, QueryAnswer, QueryAsk, RowAnswer, RowsAsk, StepRows};
use std::collections::BTreeMap;

/// Requests on rows since an attempt began or was last saved: each is a transaction, and a read is no progress of
/// the step's.
pub const ROW_REQUESTS_MAX: u32 = 1_000;

/// Bytes of a step's own name for a request.
pub const OP_BYTES_MAX: usize = 256;

/// A request on rows that a step may make now.
#[derive(Debug)]
pub struct RowsWanted(StepRows, Digest);

/// A query that a step may make now.
#[derive(Debug)]
pub struct QueryWanted(QueryAsk);

/// What an attempt has asked of rows since it began or was last saved.
#[derive(Debug, Default)]
pub(super) struct Requests {
    asked: u32,
    /// How often each request was answered: a later attempt that asks it as often gets the same answers.
    answered: BTreeMap<[u8; 32], u32>,
}

impl Requests {
    fn one_more(&mut self) -> Result<(), Rejection> {
        self.asked = self.asked.saturating_add(1);
        if self.asked > ROW_REQUESTS_MAX {
            let expected = format!("at most {ROW_REQUESTS_MAX} requests since the last save (row_requests_max)");
            return Err(Rejection::new(Code::Limit, "rows", expected, self.asked));
        }
        Ok(())
    }

    fn times(&self, request: Digest) -> u32 {
        self.answered.get(&request.0).copied().unwrap_or_default()
    }

    /// Only what was answered counts: what was refused, or whose fate nobody knows, is asked anew.
    fn was_answered(&mut self, request: Digest) {
        let times = self.answered.entry(request.0).or_default();
        *times = times.saturating_add(1);
    }
}

impl Handle {
    /// A step's request on rows, if it may make one and it can be read. `op` is the step's own name for it.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn rows_wanted(
        &mut self,
        operations: Vec<Operation>,
        requirements: Vec<Requirement>,
        op: Option<String>,
    ) -> Result<RowsWanted, Refusal> {
        self.may_ask()?;
        self.requests.one_more().map_err(|no| self.refuse(no))?;
        let ask = asked(operations, requirements).map_err(|no| self.refuse(no))?;
        let named = op.map(own_name).transpose().map_err(|no| self.refuse(no))?;
        let request = digest(&ask)?;
        let memo = named.unwrap_or_else(|| MemoName::Asked(self.requests.times(request)));
        Ok(RowsWanted(StepRows { ask, memo }, request))
    }

    /// Does what was asked, at once; the answers, and whether they are remembered ones.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn rows(&mut self, RowsWanted(ask, request): RowsWanted) -> Result<(Vec<RowAnswer>, bool), Refusal> {
        let done = self.attempt.rows(ask).await.map_err(|error| self.refuse_submit(error))?;
        self.requests.was_answered(request);
        Ok(done)
    }

    /// A step's query, if it may make one and it can be read.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn query_wanted(&mut self, asked: Question) -> Result<QueryWanted, Refusal> {
        self.may_ask()?;
        self.requests.one_more().map_err(|no| self.refuse(no))?;
        question(asked).map(QueryWanted).map_err(|no| self.refuse(no))
    }

    /// Reads rows by filter.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn query(&mut self, QueryWanted(ask): QueryWanted) -> Result<QueryAnswer, Refusal> {
        self.attempt.query(ask).await.map_err(|error| self.refuse_submit(error))
    }

    /// Stages an operation for the next save or transition: whether there is such a table, and the right to it, is
    /// judged by then.
    ///
    /// # Errors
    /// [`Refusal`]. What was staged before stays.
    pub fn stage_row(&mut self, operation: Operation) -> Result<(), Refusal> {
        self.may_ask()?;
        let operation = staged(operation, &self.stage.rows).map_err(|no| self.refuse(no))?;
        self.stage.rows.ops.push(operation);
        Ok(())
    }

    /// Stages a condition of the next save or transition.
    ///
    /// # Errors
    /// [`Refusal`]. What was staged before stays.
    pub fn stage_requirement(&mut self, requirement: Requirement) -> Result<(), Refusal> {
        self.may_ask()?;
        let requirement = required(requirement, &self.stage.rows).map_err(|no| self.refuse(no))?;
        self.stage.rows.require.push(requirement);
        Ok(())
    }

    /// What the newest accepted save or transition answered to the operations on rows that it carried, in order.
    ///
    /// # Errors
    /// Ends the attempt.
    pub fn row_answers(&self) -> Result<Vec<RowAnswer>, Stopped> {
        self.pass().map(|()| self.answers.clone())
    }
}

/// What a remembered answer is known by.
fn own_name(name: String) -> Result<MemoName, Rejection> {
    if name.is_empty() || name.len() > OP_BYTES_MAX {
        let expected = format!("1 to {OP_BYTES_MAX} bytes (op_bytes_max)");
        return Err(Rejection::new(Code::Invalid, "op", expected, format!("{} bytes", name.len())));
    }
    Ok(MemoName::Named(name))
}

fn digest(ask: &RowsAsk) -> Result<Digest, Refusal> {
    let unwritable = |why: serde_json::Error| Stopped::Unavailable(format!("a request on rows: {why}"));
    Ok(Digest::of(&[&serde_json::to_vec(ask).map_err(unwritable)?]))
}
