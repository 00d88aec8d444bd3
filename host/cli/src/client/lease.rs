//! The part of the API that is about leases.

use super::{Again, Client, Stream};
use crate::failed::Failed;
use interlock_daemon::api::{
    AcquireRequest, ExtendRequest, LeaseHeld, LeasePage, LeaseReleased, LeaseView, ReleaseRequest, WhyView,
};
use interlock_kernel::ids::LeaseName;
use reqwest::{Method, RequestBuilder};

impl Client {
    /// Takes a lease. The request names its grant, so that once more is the same lease.
    pub(crate) async fn acquire(
        &self,
        lease: &LeaseName,
        request: &AcquireRequest,
        wait: Option<&str>,
    ) -> Result<LeaseHeld, Failed> {
        let mut post = self.on(Method::POST, lease, &[]).json(request);
        if let Some(wait) = wait {
            post = post.query(&[("wait", wait)]);
        }
        self.json(post, Again::Yes).await
    }

    /// Renews a lease, asking once: who holds one decides for itself how often.
    pub(crate) async fn extend(&self, lease: &LeaseName, request: &ExtendRequest) -> Result<LeaseHeld, Failed> {
        self.json(self.on(Method::POST, lease, &["extend"]).json(request), Again::No).await
    }

    /// Gives a lease back. Sent twice it would be refused for what its own first arrival did.
    pub(crate) async fn release(&self, lease: &LeaseName, request: &ReleaseRequest) -> Result<LeaseReleased, Failed> {
        self.json(self.on(Method::POST, lease, &["release"]).json(request), Again::No).await
    }

    pub(crate) async fn lease(&self, lease: &LeaseName) -> Result<LeaseView, Failed> {
        self.json(self.on(Method::GET, lease, &[]), Again::Yes).await
    }

    pub(crate) async fn leases(&self, query: &[(&str, String)]) -> Result<LeasePage, Failed> {
        self.json(self.to(Method::GET, &["v1", "leases"]).query(query), Again::Yes).await
    }

    /// Why a lease stands where it stands.
    pub(crate) async fn why_lease(&self, lease: &LeaseName) -> Result<WhyView, Failed> {
        self.json(self.on(Method::GET, lease, &["why"]), Again::Yes).await
    }

    /// What becomes of a lease, behind a position or from now on.
    pub(crate) async fn watch_lease(&self, lease: &LeaseName, after: Option<&str>) -> Result<Stream, Failed> {
        self.stream(self.on(Method::GET, lease, &["watch"]), after).await
    }

    fn on(&self, method: Method, lease: &LeaseName, path: &[&str]) -> RequestBuilder {
        self.to(method, &[&["v1", "leases", lease.as_str()], path].concat())
    }
}
