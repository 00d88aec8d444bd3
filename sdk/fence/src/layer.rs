//! A tower layer, for axum and whatever else speaks `http`: one request of a resource at a time, none of a late owner.
//!
//! A request waits for its turn, its token is compared and kept, the inner service runs, and the turn is held until
//! the response is complete, its body included. What this protects is what the inner service has finished by then,
//! **in this process**. It does not protect
//!
//! - work that the inner service leaves running: a spawned task, `spawn_blocking` after the client went away and
//!   with it the future that waited;
//! - a resource that a second process writes too, whatever [`Highest`] they share: between their check and their
//!   write nothing keeps them apart.
//!
//! For both, check in the transaction of the write (`sqlite.rs`, `postgres.rs`). A client that reads its response
//! slowly holds its resource meanwhile, so bound how long a connection may take.

use crate::header::{BadHeader, Fence};
use crate::highest::Highest;
use crate::lanes::{Lanes, Turn};
use crate::problem::Refusal;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// How many requests may be at work or wait, unless said otherwise: far more than arrive at once from one sender,
/// which has one in flight per lane, and few enough to be held in memory.
pub const REQUESTS_MAX: usize = 1024;

/// The layer. All services made from clones of one share its turns and its highest tokens.
#[derive(Debug)]
pub struct FenceLayer<H> {
    highest: Arc<H>,
    lanes: Arc<Lanes>,
}

impl<H: Highest> FenceLayer<H> {
    /// With the highest tokens kept here, and [`REQUESTS_MAX`].
    #[must_use]
    pub fn new(highest: H) -> Self {
        Self { highest: Arc::new(highest), lanes: Arc::new(Lanes::new(REQUESTS_MAX)) }
    }

    /// At most so many requests at work or waiting; a further one is refused (503) and may come again.
    #[must_use]
    pub fn requests_max(self, requests_max: usize) -> Self {
        Self { lanes: Arc::new(Lanes::new(requests_max)), ..self }
    }
}

impl<H> Clone for FenceLayer<H> {
    fn clone(&self) -> Self {
        Self { highest: self.highest.clone(), lanes: self.lanes.clone() }
    }
}

impl<S, H> Layer<S> for FenceLayer<H> {
    type Service = Fenced<S, H>;
    fn layer(&self, inner: S) -> Self::Service {
        Fenced { inner, layer: self.clone() }
    }
}

/// A service behind the layer. It finds the [`Fence`] among the request's extensions.
#[derive(Debug)]
pub struct Fenced<S, H> {
    inner: S,
    layer: FenceLayer<H>,
}

impl<S: Clone, H> Clone for Fenced<S, H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, H, A, B> Service<Request<A>> for Fenced<S, H>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    H: Highest,
    A: Send + 'static,
    B: Body + From<Vec<u8>>,
{
    type Response = Response<Held<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let layer = self.layer.clone();
        // The one that said it is ready is the one to be called.
        let again = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, again);
        Box::pin(async move {
            let (fence, turn) = match layer.admit(Fence::read(request.headers())).await {
                Ok(admitted) => admitted,
                Err(refusal) => return Ok(refusal.problem().response().map(Held::by_nobody)),
            };
            request.extensions_mut().insert(fence);
            let response = inner.call(request).await?;
            Ok(response.map(|body| Held::until_complete(body, turn)))
        })
    }
}

impl<H: Highest> FenceLayer<H> {
    async fn admit(&self, fence: Result<Fence, BadHeader>) -> Result<(Fence, Turn), Refusal> {
        let fence = fence?;
        let turn = self.lanes.turn(&fence.resource).await?;
        // Kept before the work begins: whatever becomes of it, nobody older writes after it.
        self.highest.raise(&fence).await?;
        Ok((fence, turn))
    }
}

pin_project! {
    /// A response's body that holds its resource's turn until it is complete or dropped.
    #[derive(Debug)]
    pub struct Held<B> {
        #[pin]
        body: B,
        turn: Option<Turn>,
    }
}

impl<B: Body> Held<B> {
    fn by_nobody(body: B) -> Self {
        Self { body, turn: None }
    }

    fn until_complete(body: B, turn: Turn) -> Self {
        let turn = (!body.is_end_stream()).then_some(turn);
        Self { body, turn }
    }
}

impl<B: Body> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let frame = this.body.as_mut().poll_frame(context);
        let over = matches!(frame, Poll::Ready(None | Some(Err(_))));
        if over || (frame.is_ready() && this.body.is_end_stream()) {
            *this.turn = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
