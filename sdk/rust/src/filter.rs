//! Tests of fields, put together: guards of rows, and what a claim or a query looks for.

use crate::Value;

/// Begins a test of a field: `field("status").eq("pending")`. Paths are of the row, `payload.amount`, `tags[0]`; in
/// a condition on an entity they begin with its document, `data.size`.
pub fn field(path: impl Into<String>) -> Field {
    Field(path.into())
}

/// A field to be tested. A missing one fails every test but [`Field::missing`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a field tests nothing until it is compared"]
pub struct Field(String);

/// How a field is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the contract are in wit/types.wit, said once")]
pub enum Operator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
    Exists,
    Contains,
    StartsWith,
}

/// One test of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The field's path.
    pub field: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub value: Value,
}

/// Any of these groups, each of which needs all of its tests. An empty one matches everything.
///
/// ```
/// use interlock_sdk::{field, from};
///
/// let pending = field("status").eq("pending");
/// let stale = field("status").eq("in_flight").and(field("claimed_at").lt(from("now-5m")));
/// assert_eq!(pending.or(stale).0.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub Vec<Vec<Comparison>>);

impl Field {
    /// It is this; numbers by value.
    pub fn eq(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Eq, value)
    }

    /// It is there, and not this.
    pub fn ne(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Ne, value)
    }

    /// It is less: a number than a number, a text than a text.
    pub fn lt(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Lt, value)
    }

    /// It is less, or the same.
    pub fn le(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Le, value)
    }

    /// It is greater.
    pub fn gt(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Gt, value)
    }

    /// It is greater, or the same.
    pub fn ge(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Ge, value)
    }

    /// It is one of a list.
    pub fn one_of(self, list: impl Into<Value>) -> Filter {
        self.test(Operator::In, list)
    }

    /// It is there, and none of a list.
    pub fn none_of(self, list: impl Into<Value>) -> Filter {
        self.test(Operator::NotIn, list)
    }

    /// It is there; null is.
    pub fn exists(self) -> Filter {
        self.test(Operator::Exists, true)
    }

    /// It is not there.
    pub fn missing(self) -> Filter {
        self.test(Operator::Exists, false)
    }

    /// It is a list with this in it, or a text with it inside.
    pub fn contains(self, value: impl Into<Value>) -> Filter {
        self.test(Operator::Contains, value)
    }

    /// It is a text that begins with this.
    pub fn starts_with(self, text: impl Into<Value>) -> Filter {
        self.test(Operator::StartsWith, text)
    }

    fn test(self, operator: Operator, value: impl Into<Value>) -> Filter {
        Filter(vec![vec![Comparison { field: self.0, operator, value: value.into() }]])
    }
}

impl Filter {
    /// Both hold. Every group of the one is put together with every group of the other.
    #[must_use]
    pub fn and(self, other: Filter) -> Filter {
        match (self.0.is_empty(), other.0.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => {
                let with =
                    |one: &Vec<Comparison>| other.0.iter().map(|two| [&one[..], &two[..]].concat()).collect::<Vec<_>>();
                Filter(self.0.iter().flat_map(with).collect())
            }
        }
    }

    /// One of them holds.
    #[must_use]
    pub fn or(mut self, other: Filter) -> Filter {
        if self.0.is_empty() || other.0.is_empty() {
            return Filter::default(); // one of them holds always
        }
        self.0.extend(other.0);
        self
    }
}
