//! What each command does. A request, an answer, and what is shown of it.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod component;
pub(crate) mod deploy;
pub(crate) mod dev;
pub(crate) mod effect;
pub(crate) mod entity;
pub(crate) mod explore;
mod files;
mod first;
pub(crate) mod input;
pub(crate) mod inspect;
pub(crate) mod lease;
pub(crate) mod machine;
pub(crate) mod new;
pub(crate) mod row;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod stage;
pub(crate) mod table;
pub(crate) mod test;
mod watch;
pub(crate) mod why;

use watch::watch;
