//! [`WaitingServerLayer`]: a [`ServerLayer`](super::ServerLayer) whose deadline also covers the time
//! until the inner service is ready.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::time::Deadline;
use crate::token::CancelToken;

use super::server::{ServerLayer, ServerService};

/// A [`ServerLayer`] whose deadline covers the wait for a ready service; returned by
/// [`ServerLayer::count_waiting`].
#[derive(Clone, Debug)]
pub struct WaitingServerLayer<A> {
    pub(super) layer: ServerLayer<A>,
}

impl<S, A: Clone> Layer<S> for WaitingServerLayer<A> {
    type Service = ServerService<Waiting<S>, A>;

    fn layer(&self, service: S) -> Self::Service {
        self.layer.layer(Waiting {
            service,
            upstream: self.layer.upstream.clone(),
        })
    }
}

/// A service that is always ready: each call waits on a clone of the inner service.
#[derive(Clone, Debug)]
pub struct Waiting<S> {
    service: S,
    upstream: Option<CancelToken>,
}

impl<S, R> Service<R> for Waiting<S>
where
    S: Service<R> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = WaitingFuture<S, S::Future, R>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        WaitingFuture {
            stage: Stage::Waits {
                service: self.service.clone(),
                request: Some(request),
            },
            upstream: self.upstream.clone(),
        }
    }
}

pin_project! {
    /// The future of a [`Waiting`] service; resolves to the response.
    #[must_use = "futures do nothing unless polled"]
    pub struct WaitingFuture<S, F, R> {
        #[pin]
        stage: Stage<S, F, R>,
        upstream: Option<CancelToken>,
    }
}

pin_project! {
    #[project = StagePinned]
    enum Stage<S, F, R> {
        Waits { service: S, request: Option<R> },
        Called { #[pin] future: F },
    }
}

impl<S, R> Future for WaitingFuture<S, S::Future, R>
where
    S: Service<R>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let is_cancelled = || {
            this.upstream
                .as_ref()
                .is_some_and(CancelToken::is_cancelled)
        };
        loop {
            let future = match this.stage.as_mut().project() {
                StagePinned::Called { future } => return future.poll(context),
                StagePinned::Waits { service, request } => {
                    ready!(service.poll_ready(context))?;
                    // The service can become ready at the deadline or at a cancellation, because
                    // other requests end there. The outer layer then responds.
                    if Deadline::current().has_passed() || is_cancelled() {
                        return Poll::Pending;
                    }
                    let Some(request) = request.take() else {
                        return Poll::Pending;
                    };
                    service.call(request)
                }
            };
            this.stage.set(Stage::Called { future });
        }
    }
}

impl<S, F, R> fmt::Debug for WaitingFuture<S, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingFuture").finish_non_exhaustive()
    }
}
