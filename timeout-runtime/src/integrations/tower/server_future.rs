//! [`ServerFuture`]: waits for the response of a service until the request's deadline, or refuses
//! the request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;

use crate::context::Scope;

use super::body::ServerBody;
use super::grpc;
use super::refusal::Refusal;
use super::respond::Respond;
use super::work::Work;

pin_project! {
    /// The future of a request; resolves to the response.
    ///
    /// Dropping it before it is ready cancels all operations of the request. Polling it after it is
    /// ready panics.
    #[must_use = "futures do nothing unless polled"]
    pub struct ServerFuture<F, A> {
        // Declared before `future`, so that the operations are cancelled before it is dropped.
        work: Option<Work>,
        #[pin]
        future: Option<Scope<F>>,
        method: Method,
        is_grpc: bool,
        has_begun: bool,
        refusal: Option<Refusal>,
        respond: A,
    }
}

impl<F, A> ServerFuture<F, A> {
    /// Waits for the service's `future`.
    pub(super) fn new(
        work: Work,
        future: Scope<F>,
        method: Method,
        respond: A,
        is_grpc: bool,
    ) -> Self {
        Self {
            work: Some(work),
            future: Some(future),
            method,
            is_grpc,
            has_begun: false,
            refusal: None,
            respond,
        }
    }

    /// Responds without the service.
    pub(super) fn refused(refusal: Refusal, respond: A, is_grpc: bool) -> Self {
        Self {
            work: None,
            future: None,
            method: Method::GET,
            is_grpc,
            has_begun: false,
            refusal: Some(refusal),
            respond,
        }
    }
}

/// Creates the response that replaces the service's response.
fn refuse<A, B>(refusal: &Refusal, respond: &A, is_grpc: bool) -> Response<ServerBody<B, A>>
where
    A: Respond<B>,
{
    let mut response = respond.respond(refusal.clone());
    if is_grpc {
        grpc::ensure_status(response.headers_mut(), refusal);
    }
    response.map(ServerBody::outside)
}

/// Whether a server sends the body. If not, the response is complete with its head.
fn may_have_body(method: &Method, status: StatusCode) -> bool {
    let has_none = status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        || *method == Method::HEAD
        || *method == Method::CONNECT && status.is_success();
    !has_none
}

impl<F, A, B, E> Future for ServerFuture<F, A>
where
    F: Future<Output = Result<Response<B>, E>>,
    A: Respond<B> + Clone,
    B: Body,
{
    type Output = Result<Response<ServerBody<B, A>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (Some(work), Some(mut future)) =
            (this.work.as_mut(), this.future.as_mut().as_pin_mut())
        else {
            let Some(refusal) = this.refusal.take() else {
                panic!("`ServerFuture` polled after completion");
            };
            return Poll::Ready(Ok(refuse(&refusal, this.respond, *this.is_grpc)));
        };
        let before = work.refusal();
        // A future that was never polled does not start after the deadline.
        let polled = if before.is_some() && !*this.has_begun {
            Poll::Pending
        } else {
            *this.has_begun = true;
            future.as_mut().poll(context)
        };
        let refusal = match &polled {
            Poll::Ready(_) => before.or_else(|| work.refusal()),
            // It is polled once more.
            Poll::Pending => before,
        };
        let result = match (refusal, polled) {
            (None, Poll::Ready(Ok(response))) => {
                let (head, body) = response.into_parts();
                if !may_have_body(this.method, head.status) {
                    Work::end(this.work);
                }
                let body = future.hand_over(body);
                let body = ServerBody::new(&head, body, this.work.take(), this.respond);
                Ok(Response::from_parts(head, body))
            }
            (None, Poll::Ready(Err(error))) => {
                Work::end(this.work);
                Err(error)
            }
            (None, Poll::Pending) => {
                work.wake(context);
                return Poll::Pending;
            }
            (Some(refusal), late) => {
                // Drops a late response in the context, like the future.
                drop(future.hand_over(late));
                Ok(refuse(&refusal, this.respond, *this.is_grpc))
            }
        };
        this.future.set(None);
        Poll::Ready(result)
    }
}

impl<F, A> fmt::Debug for ServerFuture<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFuture")
            .field("deadline", &self.work.as_ref().map(Work::deadline))
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}
