//! The courier against targets that this machine plays. Nothing leaves it.

mod addresses;
mod answers;
mod configuration;
mod guard;
mod headers;
mod patterns;
mod redirects;
mod secrets;
mod strange;
mod target;
mod tls;
mod urls;
