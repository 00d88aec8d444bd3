//! Between a step's words about rows and the kernel's: paths are of the row, texts become values or are refused.

use super::words::{Edit, Given, document, edited, given};
use interlock_kernel::ids::{BadName, Name, TableName};
use interlock_kernel::limits::{
    CLAIM_DEFAULT, COMPARISONS_MAX, MUTATIONS_MAX, REQUIRES_MAX, ROW_OPS_MAX, ROWS_BYTES_MAX,
};
use interlock_kernel::rejection::{Code, Rejection};
use interlock_kernel::rows::{self, Found, QueryAsk, Require, RowAsk, RowOp, RowsAsk};
use interlock_kernel::value::{Comparison, Filter, Operator, Path, Root, Value};

/// Fields of one answer that a step may name.
pub const FIELDS_MAX: usize = 64;

/// An operation on a table, in a step's words: documents are text.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The table.
    pub table: String,
    /// What is done to it.
    pub action: Action,
    /// Top-level fields of the value to answer with; none means all of it.
    pub fields: Vec<String>,
    /// Refuses the whole request if it matches nothing.
    pub must: bool,
}

/// What is done to a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// See [`RowAsk::Get`].
    Get {
        /// The row.
        key: Given,
    },
    /// See [`RowAsk::Put`].
    Put {
        /// The row.
        key: Given,
        /// Its value.
        value: String,
        /// Applied to that.
        fill: Vec<Edit>,
        /// What is there now.
        expect: Option<Expected>,
    },
    /// See [`RowAsk::Update`].
    Update {
        /// The row.
        key: Given,
        /// The guard.
        filter: Tests,
        /// The changes.
        set: Vec<Edit>,
    },
    /// See [`RowAsk::Upsert`].
    Upsert {
        /// The row.
        key: Given,
        /// Its value if it is absent.
        insert: String,
        /// Applied to that.
        fill: Vec<Edit>,
        /// The changes if it is there.
        set: Vec<Edit>,
    },
    /// See [`RowAsk::Claim`].
    Claim {
        /// Which.
        filter: Option<Tests>,
        /// How they are marked.
        set: Option<Vec<Edit>>,
        /// In which order.
        order: Order,
        /// At most so many.
        limit: Option<u32>,
        /// Removes them.
        delete: bool,
    },
    /// See [`RowAsk::Delete`].
    Delete {
        /// The row.
        key: Given,
        /// The guard.
        filter: Tests,
    },
}

/// What a put expects to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No row.
    Absent,
    /// The row that was shown with this mark.
    Etag(String),
}

/// Any of these, each of which needs all of its own.
pub type Tests = Vec<Vec<Test>>;

/// One test of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The field's path.
    pub field: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub value: Given,
}

/// An order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By what.
    pub by: OrderBy,
    /// The last first.
    pub descending: bool,
}

/// What orders rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OrderBy {
    /// Their insertion.
    #[default]
    Created,
    /// Their last change.
    Updated,
    /// A declared index.
    Index(String),
}

/// A condition on something else.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// On a row.
    Row {
        /// The table.
        table: String,
        /// The row.
        key: Given,
        /// Whether there is to be one.
        present: bool,
        /// What is to hold of it.
        filter: Tests,
    },
    /// On an entity.
    Entity {
        /// `machine/key`.
        entity: String,
        /// It is in one of these; none means any.
        states: Vec<String>,
        /// What is to hold of its documents.
        filter: Tests,
    },
}

/// A question about rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The table.
    pub table: String,
    /// Which rows.
    pub filter: Tests,
    /// In which order.
    pub order: Order,
    /// At most so many.
    pub limit: Option<u32>,
    /// Where an earlier answer ended.
    pub after: Option<String>,
    /// Top-level fields of the values; none means all.
    pub fields: Vec<String>,
}

/// The mark under which a step is shown a row's version.
#[must_use]
pub fn etag(version: u64) -> String {
    version.to_string()
}

/// A request, or why there is none.
pub(super) fn asked(operations: Vec<Operation>, requirements: Vec<Requirement>) -> Result<RowsAsk, Rejection> {
    within("operations", operations.len(), ROW_OPS_MAX, "row_ops_max")?;
    within("requirements", requirements.len(), REQUIRES_MAX, "requires_max")?;
    let mut budget = Budget::default();
    let mut ask = RowsAsk::default();
    for (nth, one) in requirements.into_iter().enumerate() {
        ask.require.push(budget.requirement(one).map_err(|no| placed("requirements", nth, no))?);
    }
    for (nth, one) in operations.into_iter().enumerate() {
        ask.ops.push(budget.operation(one).map_err(|no| placed("operations", nth, no))?);
    }
    Ok(ask)
}

/// One operation more, beside what is staged.
pub(super) fn staged(operation: Operation, stage: &RowsAsk) -> Result<RowOp, Rejection> {
    within("operations", stage.ops.len().saturating_add(1), ROW_OPS_MAX, "row_ops_max")?;
    Budget::of(stage).operation(operation)
}

/// One condition more, beside what is staged.
pub(super) fn required(requirement: Requirement, stage: &RowsAsk) -> Result<Require, Rejection> {
    within("requirements", stage.require.len().saturating_add(1), REQUIRES_MAX, "requires_max")?;
    Budget::of(stage).requirement(requirement)
}

/// A query, or why there is none.
pub(super) fn question(question: Question) -> Result<QueryAsk, Rejection> {
    let mut budget = Budget::default();
    let Question { table, filter, order, limit, after, fields } = question;
    if let Some(after) = &after {
        budget.spend("after", after.len())?;
    }
    Ok(QueryAsk {
        table: self::table(&table)?,
        filter: budget.filter(filter, of_row)?,
        order: self::order(order)?,
        limit: limit.unwrap_or(CLAIM_DEFAULT),
        after,
        fields: budget.fields(fields)?,
    })
}

/// Where among several a refused one stands.
fn placed(list: &str, nth: usize, no: Rejection) -> Rejection {
    Rejection { subject: format!("{list}[{nth}].{}", no.subject), ..no }
}

fn within(subject: &str, got: usize, max: usize, name: &str) -> Result<(), Rejection> {
    if got > max {
        return Err(Rejection::new(Code::Limit, subject, format!("at most {max} ({name})"), got));
    }
    Ok(())
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::Json(doc) => doc.text().len(),
        Value::From(source) => source.to_string().len(),
    }
}

fn of_set(set: &[interlock_kernel::value::Mutation]) -> usize {
    set.iter().map(|one| one.field.to_string().len() + of_value(&one.value)).sum()
}

fn of_filter(filter: &Filter) -> usize {
    filter.any.iter().flatten().map(|one| one.field.to_string().len() + of_value(&one.value)).sum()
}

/// Bytes that a request may still bring: values are kept while it waits.
#[derive(Default)]
struct Budget {
    spent: usize,
}

impl Budget {
    /// What is left beside what is staged.
    fn of(stage: &RowsAsk) -> Self {
        let ops = stage.ops.iter().map(|op| {
            let fields: usize = op.fields.iter().map(String::len).sum();
            fields.saturating_add(match &op.what {
                RowAsk::Get { key } => of_value(key),
                RowAsk::Put { key, value, fill, .. } => of_value(key) + value.text().len() + of_set(fill),
                RowAsk::Update { key, filter, set } => of_value(key) + of_filter(filter) + of_set(set),
                RowAsk::Upsert { key, insert, fill, set } => {
                    of_value(key) + insert.text().len() + of_set(fill) + of_set(set)
                }
                RowAsk::Claim { filter, set, .. } => {
                    filter.as_ref().map_or(0, of_filter) + set.as_deref().map_or(0, of_set)
                }
                RowAsk::Delete { key, filter } => of_value(key) + of_filter(filter),
            })
        });
        let require = stage.require.iter().map(|require| match require {
            Require::Row { key, filter, .. } => of_value(key) + of_filter(filter),
            Require::Entity { filter, .. } => of_filter(filter),
        });
        Self { spent: ops.chain(require).fold(0, usize::saturating_add) }
    }

    fn spend(&mut self, subject: &str, bytes: usize) -> Result<(), Rejection> {
        self.spent = self.spent.saturating_add(bytes);
        if self.spent > ROWS_BYTES_MAX {
            let expected = format!("at most {ROWS_BYTES_MAX} bytes of texts in one request (rows_bytes_max)");
            return Err(Rejection::new(Code::Limit, subject, expected, format!("{} bytes", self.spent)));
        }
        Ok(())
    }

    fn operation(&mut self, operation: Operation) -> Result<RowOp, Rejection> {
        let Operation { table, action, fields, must } = operation;
        let table = self::table(&table)?;
        Ok(RowOp { table, what: self.action(action)?, fields: self.fields(fields)?, must })
    }

    fn action(&mut self, action: Action) -> Result<RowAsk, Rejection> {
        Ok(match action {
            Action::Get { key } => RowAsk::Get { key: self.key(key)? },
            Action::Put { key, value, fill, expect } => RowAsk::Put {
                key: self.key(key)?,
                value: self.document("value", &value)?,
                fill: self.set("fill", fill)?,
                expect: expect.map(expected).transpose()?,
            },
            Action::Update { key, filter, set } => {
                RowAsk::Update { key: self.key(key)?, filter: self.filter(filter, of_row)?, set: self.set("set", set)? }
            }
            Action::Upsert { key, insert, fill, set } => RowAsk::Upsert {
                key: self.key(key)?,
                insert: self.document("insert", &insert)?,
                fill: self.set("fill", fill)?,
                set: self.set("set", set)?,
            },
            Action::Claim { filter, set, order, limit, delete } => RowAsk::Claim {
                filter: filter.map(|filter| self.filter(filter, of_row)).transpose()?,
                set: set.map(|set| self.set("set", set)).transpose()?,
                order: self::order(order)?,
                limit: limit.unwrap_or(CLAIM_DEFAULT),
                delete,
            },
            Action::Delete { key, filter } => {
                RowAsk::Delete { key: self.key(key)?, filter: self.filter(filter, of_row)? }
            }
        })
    }

    fn requirement(&mut self, requirement: Requirement) -> Result<Require, Rejection> {
        Ok(match requirement {
            Requirement::Row { table, key, present, filter } => Require::Row {
                table: self::table(&table)?,
                key: self.key(key)?,
                present,
                filter: self.filter(filter, of_row)?,
            },
            Requirement::Entity { entity, states, filter } => {
                let bad = |bad: BadName| Rejection::new(Code::Invalid, "entity", bad.expected, bad.got);
                let state = |state: String| {
                    state.parse().map_err(|bad: BadName| Rejection::new(Code::Invalid, "states", bad.expected, bad.got))
                };
                within("states", states.len(), COMPARISONS_MAX, "comparisons_max")?;
                Require::Entity {
                    entity: entity.parse().map_err(bad)?,
                    states: states.into_iter().map(state).collect::<Result<Vec<Name>, _>>()?,
                    filter: self.filter(filter, of_entity)?,
                }
            }
        })
    }

    fn key(&mut self, key: Given) -> Result<Value, Rejection> {
        self.value("key", key)
    }

    fn value(&mut self, subject: &str, value: Given) -> Result<Value, Rejection> {
        let (Given::Json(text) | Given::From(text)) = &value;
        self.spend(subject, text.len())?;
        given(subject, value)
    }

    fn document(&mut self, subject: &str, text: &str) -> Result<interlock_kernel::doc::Doc, Rejection> {
        self.spend(subject, text.len())?;
        document(text, subject)
    }

    fn fields(&mut self, fields: Vec<String>) -> Result<Vec<String>, Rejection> {
        within("fields", fields.len(), FIELDS_MAX, "fields_max")?;
        self.spend("fields", fields.iter().map(String::len).fold(0, usize::saturating_add))?;
        Ok(fields)
    }

    fn set(&mut self, subject: &str, set: Vec<Edit>) -> Result<Vec<interlock_kernel::value::Mutation>, Rejection> {
        within(subject, set.len(), MUTATIONS_MAX, "mutations_max")?;
        let mut found = Vec::new();
        for (nth, edit) in set.into_iter().enumerate() {
            let subject = format!("{subject}[{nth}]");
            let value = edit.value.as_ref().map_or(0, |(Given::Json(text) | Given::From(text))| text.len());
            self.spend(&subject, edit.field.len().saturating_add(value))?;
            found.push(edited(&subject, edit, of_row)?);
        }
        Ok(found)
    }

    fn filter(&mut self, tests: Tests, path: fn(&str) -> Result<Path, String>) -> Result<Filter, Rejection> {
        let count = tests.iter().map(|all| all.len().max(1)).fold(0, usize::saturating_add);
        within("where", count, COMPARISONS_MAX, "comparisons_max")?;
        let mut any = Vec::new();
        for (group, tests) in tests.into_iter().enumerate() {
            let mut all = Vec::new();
            for (nth, Test { field, operator, value }) in tests.into_iter().enumerate() {
                let subject = format!("where[{group}][{nth}]");
                self.spend(&subject, field.len())?;
                let field = path(&field).map_err(|why| Rejection::new(Code::Invalid, &subject, "a field path", why))?;
                all.push(Comparison { field, operator, value: self.value(&format!("{subject}.value"), value)? });
            }
            any.push(all);
        }
        Ok(Filter { any })
    }
}

fn table(name: &str) -> Result<TableName, Rejection> {
    name.parse().map_err(|bad: BadName| Rejection::new(Code::Invalid, "table", bad.expected, bad.got))
}

fn order(order: Order) -> Result<rows::Order, Rejection> {
    let by = match order.by {
        OrderBy::Created => rows::OrderBy::Created,
        OrderBy::Updated => rows::OrderBy::Updated,
        OrderBy::Index(name) => rows::OrderBy::Index(
            name.parse().map_err(|bad: BadName| Rejection::new(Code::Invalid, "order", bad.expected, bad.got))?,
        ),
    };
    Ok(rows::Order { by, descending: order.descending })
}

fn expected(expected: Expected) -> Result<Found, Rejection> {
    match expected {
        Expected::Absent => Ok(Found::Absent),
        Expected::Etag(text) => text.parse().map(Found::Version).map_err(|_| {
            Rejection::new(Code::Invalid, "expect", "the etag of a row as it was answered", format!("{text:?}"))
        }),
    }
}

/// A path of the row: `status` and `row.status` are the same, `row` alone is all of it.
fn of_row(text: &str) -> Result<Path, String> {
    let whole = text.strip_prefix("row").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let absolute = match text.starts_with('[') {
        _ if whole => text.to_owned(),
        true => format!("row{text}"),
        false => format!("row.{text}"),
    };
    let path: Path = absolute.parse()?;
    // Written anew: an index serves a comparison whose field is written like its own.
    Ok(Path::new(path.root, path.segments))
}

/// A path of another entity's documents.
fn of_entity(text: &str) -> Result<Path, String> {
    let path: Path = text.parse()?;
    match path.root {
        Root::Desired | Root::Data | Root::Outputs => Ok(path),
        Root::Event | Root::Row => Err(format!("expected a path under desired, data or outputs, got {path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is staged in pieces is bounded as one request is: whatever part of an operation brings the bytes.
    #[test]
    fn what_is_staged_counts_with_what_comes() {
        let long = || Given::Json(format!("{:?}", "x".repeat(250 * 1024)));
        let short = || Given::Json("\"k\"".to_owned());
        let test = || vec![vec![Test { field: "a".to_owned(), operator: Operator::Eq, value: long() }]];
        for in_key in [true, false] {
            let update = || Operation {
                table: "jobs".to_owned(),
                action: Action::Update {
                    key: if in_key { long() } else { short() },
                    filter: if in_key { Vec::new() } else { test() },
                    set: Vec::new(),
                },
                fields: Vec::new(),
                must: false,
            };
            let mut stage = RowsAsk::default();
            for _ in 0..4 {
                stage.ops.push(staged(update(), &stage).unwrap_or_else(|no| panic!("{no}")));
            }
            let require = || Requirement::Row { table: "jobs".to_owned(), key: short(), present: true, filter: test() };
            for refused in [staged(update(), &stage).err(), required(require(), &stage).err()] {
                let refused = refused.unwrap_or_else(|| panic!("one more was taken"));
                assert!(refused.code == Code::Limit && refused.expected.contains("rows_bytes_max"), "{refused}");
            }
        }
    }
}
