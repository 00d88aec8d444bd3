//! Sends one outbound request, only where its target and the operator both allow it.
//!
//! [`Courier::send`] is one try: it decides neither when nor how often nor in which order. [`classify`] says
//! what came of it. It knows no entity, store or guest, and depends on no other crate of this project.
//!
//! What holds for every try:
//!
//! - **Two keys.** The URL matches the [`Pattern`] that the manifest declares, and a rule of the operator
//!   ([`Allowed`]) that also names the method and the secret. Neither widens the other; a redirect is judged
//!   like the first URL.
//! - **Addresses are judged after they are resolved** ([`Networks`]): all that is not public is refused
//!   unless the operator lists it, and the connection goes to the address that was judged.
//! - **A secret** is read at each try, put into one header, taken out of an answer that echoes it, and
//!   neither logged nor part of any error.
//! - **Everything is bounded**: one timeout over all of it, the answer's head and body, redirects
//!   ([`REDIRECTS_MAX`]; 307 and 308 only, which keep method and body).
//! - **Nothing is shared** but the configuration: no pool, no cookies, no cache. Variables such as
//!   `HTTP_PROXY` are not looked at, and no answer is decompressed.
//! - **An error says whether the target may have seen the request** ([`Sent`]).
//!
//! It reads no clock: a timeout is tokio's, the wall clock is handed in, and how long a try took is for the
//! caller to measure. Without the feature `client` there is only what a manifest needs to read its targets:
//! [`Pattern`], [`Destination`], [`Method`], [`guest_may_set`].

mod header;
mod method;
mod pattern;
mod url;

pub use header::{Forbidden, guest_may_set};
pub use method::{BadMethod, Method};
pub use pattern::{BadPattern, Pattern, Unfilled};
pub use url::{BadUrl, Destination, Host, Scheme, URL_BYTES_MAX};

#[cfg(feature = "client")]
mod allowed;
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod courier;
#[cfg(feature = "client")]
mod deadline;
#[cfg(feature = "client")]
mod exchange;
#[cfg(feature = "client")]
mod networks;
#[cfg(feature = "client")]
mod outbound;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod secret;
#[cfg(feature = "client")]
mod tls;
#[cfg(feature = "client")]
mod verdict;

#[cfg(feature = "client")]
pub use crate::{
    allowed::{Allow, Allowed, BadConfiguration, Problem},
    connect::{Resolve, Resolving, System},
    courier::{Courier, REDIRECTS_MAX},
    networks::{Networks, SPECIAL, Special, special},
    outbound::{ANSWER_BYTES_MAX, Answer, Fault, Outbound, Refusal, Rule, SecretUse, SendError, Sent, Step},
    secret::{MissingSecret, SECRET_BYTES_MAX, Secret, Source},
    tls::BadRoots,
    verdict::{RETRY_AFTER_MAX, Verdict, classify},
};
