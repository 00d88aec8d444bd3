//! The part of the API that is about tables and rows.

use super::{Again, Client, Stream};
use crate::failed::Failed;
use interlock_daemon::api::{DeclareRequest, Declared, Document, Dropping, RowPage, RowView, TablePage, TableView};
use interlock_kernel::ids::{RowKey, TableName};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Who asks, under which id: sent again under it, a request is done once.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) label: Option<String>,
    pub(crate) id: String,
}

/// What is there when a row is put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// Whatever it is.
    Any,
    /// Nothing.
    Absent,
    /// This version.
    Version(u64),
}

impl Client {
    pub(crate) async fn declare(&self, manifest: &str, check_only: bool) -> Result<Declared, Failed> {
        let request = DeclareRequest { manifest: manifest.to_owned() };
        let post = self.to(Method::POST, &["v1", "tables"]).query(&[("check_only", check_only)]);
        self.json(post.json(&request), Again::Yes).await
    }

    pub(crate) async fn tables(&self, query: &[(&str, String)]) -> Result<TablePage, Failed> {
        self.json(self.to(Method::GET, &["v1", "tables"]).query(query), Again::Yes).await
    }

    pub(crate) async fn table(&self, table: &TableName) -> Result<TableView, Failed> {
        self.json(self.in_table(Method::GET, table, &[]), Again::Yes).await
    }

    pub(crate) async fn drop_table(&self, table: &TableName) -> Result<Dropping, Failed> {
        // Sent twice it may be told that it is gone already.
        self.json(self.in_table(Method::DELETE, table, &[]), Again::No).await
    }

    pub(crate) async fn watch_table(&self, table: &TableName, after: Option<&str>) -> Result<Stream, Failed> {
        let get = self.to(Method::GET, &["v1", "watch"]).query(&[("table", table.as_str())]);
        self.stream(get, after).await
    }

    pub(crate) async fn row(&self, table: &TableName, key: &RowKey) -> Result<RowView, Failed> {
        self.json(self.in_table(Method::GET, table, &["rows", key.as_str()]), Again::Yes).await
    }

    pub(crate) async fn query_rows(
        &self,
        table: &TableName,
        request: &impl Serialize,
        label: Option<&str>,
    ) -> Result<RowPage, Failed> {
        let post = self.in_table(Method::POST, table, &["query"]).json(request);
        self.json(labelled(post, label), Again::Yes).await
    }

    pub(crate) async fn put_row<T: DeserializeOwned>(
        &self,
        (table, key): (&TableName, &RowKey),
        value: &Document,
        expected: Expected,
        asking: &Asking,
    ) -> Result<T, Failed> {
        let put = self.in_table(Method::PUT, table, &["rows", key.as_str()]).json(value);
        let put = match expected {
            Expected::Any => put,
            Expected::Absent => put.header("If-None-Match", "*"),
            Expected::Version(version) => put.header("If-Match", format!("\"{version}\"")),
        };
        self.json(asked(put, asking), Again::Yes).await
    }

    /// `update`, `upsert` or `claim`.
    pub(crate) async fn on_rows<T: DeserializeOwned>(
        &self,
        (table, verb): (&TableName, &str),
        request: &impl Serialize,
        asking: &Asking,
    ) -> Result<T, Failed> {
        let post = self.in_table(Method::POST, table, &[verb]).json(request);
        self.json(asked(post, asking), Again::Yes).await
    }

    pub(crate) async fn transact<T: DeserializeOwned>(
        &self,
        request: &impl Serialize,
        asking: &Asking,
    ) -> Result<T, Failed> {
        self.json(asked(self.to(Method::POST, &["v1", "transact"]).json(request), asking), Again::Yes).await
    }

    fn in_table(&self, method: Method, table: &TableName, path: &[&str]) -> RequestBuilder {
        self.to(method, &[&["v1", "tables", table.as_str()], path].concat())
    }
}

fn asked(request: RequestBuilder, asking: &Asking) -> RequestBuilder {
    labelled(request.header("Idempotency-Key", &asking.id), asking.label.as_deref())
}

fn labelled(request: RequestBuilder, label: Option<&str>) -> RequestBuilder {
    match label {
        Some(label) => request.query(&[("as", label)]),
        None => request,
    }
}
