//! The part of the API that is about schedules.

use super::{Again, Client};
use crate::failed::Failed;
use interlock_daemon::api::{SchedulePage, ScheduleRequest, ScheduleView, Scheduled};
use interlock_kernel::ids::ScheduleName;
use reqwest::{Method, RequestBuilder};

impl Client {
    pub(crate) async fn declare_schedule(&self, manifest: &str, check_only: bool) -> Result<Scheduled, Failed> {
        let request = ScheduleRequest { manifest: manifest.to_owned() };
        let post = self.to(Method::POST, &["v1", "schedules"]).query(&[("check_only", check_only)]);
        self.json(post.json(&request), Again::Yes).await
    }

    pub(crate) async fn schedules(&self, query: &[(&str, String)]) -> Result<SchedulePage, Failed> {
        self.json(self.to(Method::GET, &["v1", "schedules"]).query(query), Again::Yes).await
    }

    pub(crate) async fn schedule(&self, name: &ScheduleName) -> Result<ScheduleView, Failed> {
        self.json(self.of_schedule(Method::GET, name, &[]), Again::Yes).await
    }

    pub(crate) async fn pause_schedule(&self, name: &ScheduleName, paused: bool) -> Result<ScheduleView, Failed> {
        let what = if paused { "pause" } else { "resume" };
        self.json(self.of_schedule(Method::POST, name, &[what]), Again::Yes).await
    }

    pub(crate) async fn drop_schedule(&self, name: &ScheduleName) -> Result<ScheduleView, Failed> {
        // Sent twice it may be told that it is gone already.
        self.json(self.of_schedule(Method::DELETE, name, &[]), Again::No).await
    }

    fn of_schedule(&self, method: Method, name: &ScheduleName, path: &[&str]) -> RequestBuilder {
        self.to(method, &[&["v1", "schedules", name.as_str()], path].concat())
    }
}
