//! A worker: takes the lease over HTTP, reads the set, writes it back with one element more.

use crate::service::Service;
use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use interlock_support::api::Api;
use interlock_support::host::Host;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The lease that protects the set.
const LEASE: &str = "the-set";

/// The least that a host grants: a pause for longer than that is not a long wait for whoever watches.
const TTL: &str = "1s";

pub(crate) struct Worker {
    name: &'static str,
    api: Api,
    http: reqwest::Client,
    set: String,
}

/// A lease in a worker's hand.
#[derive(Debug)]
pub(crate) struct Held {
    grant: String,
    pub(crate) token: u64,
}

impl Worker {
    pub(crate) fn new(host: &Host, service: &Service, name: &'static str) -> Result<Self> {
        let http = reqwest::Client::new();
        Ok(Self { name, api: host.api().clone(), http, set: service.url.clone() })
    }

    /// The lease, waited for in line.
    pub(crate) async fn take(&self) -> Result<Held> {
        let body = json!({ "ttl": TTL, "label": self.name });
        let granted = self.api.post(&format!("/v1/leases/{LEASE}?wait=60s"), body).await?.done()?;
        let grant = granted["grant"].as_str().context("a grant")?.to_owned();
        Ok(Held { grant, token: granted["token"].as_u64().context("a token")? })
    }

    pub(crate) async fn give_back(&self, held: &Held) -> Result<()> {
        let body = json!({ "grant": held.grant, "token": held.token });
        self.api.post(&format!("/v1/leases/{LEASE}/release"), body).await?.done().map(drop)
    }

    pub(crate) async fn read(&self) -> Result<BTreeSet<String>> {
        let answer = self.http.get(&self.set).send().await?.error_for_status()?;
        Ok(serde_json::from_str(&answer.text().await?)?)
    }

    /// Whether the service took it.
    pub(crate) async fn write(&self, held: &Held, mut set: BTreeSet<String>, element: &str) -> Result<bool> {
        set.insert(element.to_owned());
        let request = self
            .http
            .request(Method::PUT, &self.set)
            .header("Interlock-Fence-Resource", LEASE)
            .header("Interlock-Fencing-Token", held.token)
            .body(serde_json::to_string(&set)?);
        let answer = request.send().await?;
        if answer.status() == StatusCode::PRECONDITION_FAILED {
            let problem: Value = serde_json::from_str(&answer.text().await?)?;
            ensure!(problem["code"] == "fenced", "expected the code fenced, got {problem}");
            return Ok(false);
        }
        answer.error_for_status()?;
        Ok(true)
    }
}
