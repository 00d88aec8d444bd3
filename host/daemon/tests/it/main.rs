//! The HTTP API over a real daemon on a real folder: one without steps, and one with.

mod configuration;
mod contract;
mod entities;
mod events;
mod host;
mod leases;
mod machines;
mod rows;
mod schedules;
mod site;
mod timers;
mod watch;
mod why;
