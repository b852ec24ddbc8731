//! [`ServerBody`]: ends the body of a response when its request is over, with an error or a gRPC
//! status. Dropped early, it cancels the request's operations.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::context::Scope;

use super::grpc;
use super::respond::Respond;
use super::work::Work;

type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// The body of a response, as the documentation of [`ServerLayer`](super::ServerLayer)
    /// describes it.
    pub struct ServerBody<B, A> {
        // Declared before `body`, so that the operations are cancelled before the body is dropped.
        work: Option<Work>,
        #[pin]
        body: Option<Scope<B>>,
        has_begun: bool,
        // The number of bytes that the server still expects, if it is known.
        left: Option<u64>,
        // Creates the trailers, if the client reads a status after the body.
        respond: Option<A>,
    }
}

impl<B, A> ServerBody<B, A> {
    /// Wraps a body that belongs to no request.
    pub(super) fn outside(body: B) -> Self {
        Self {
            work: None,
            body: Some(Scope::outside(body)),
            has_begun: false,
            left: None,
            respond: None,
        }
    }
}

impl<B: Body, A: Clone> ServerBody<B, A> {
    /// Wraps the body of the service's response with the head `head`.
    pub(super) fn new(head: &Parts, body: Scope<B>, work: Option<Work>, respond: &A) -> Self {
        let size = body.get_ref().and_then(|body| body.size_hint().exact());
        let mut body = Self {
            work,
            left: size.or_else(|| content_length(&head.headers)),
            body: Some(body),
            has_begun: false,
            respond: grpc::has_trailers(&head.headers).then(|| respond.clone()),
        };
        if body.is_at_end() {
            Work::end(&mut body.work);
        } else if let (Some(0), Some(work)) = (body.left, &mut body.work) {
            work.disarm();
        }
        body
    }
}

impl<B: Body, A> ServerBody<B, A> {
    fn is_at_end(&self) -> bool {
        self.body.as_ref().is_none_or(is_at_end)
    }
}

fn is_at_end<B: Body>(body: &Scope<B>) -> bool {
    body.get_ref().is_none_or(B::is_end_stream)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl<B, A> Body for ServerBody<B, A>
where
    B: Body,
    B::Error: Into<BoxError>,
    A: Respond<B>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let Some(work) = this.work.as_mut() else {
            let polled = body.poll_inside(context, B::poll_frame);
            return polled.map_err(Into::into);
        };
        let before = work.refusal();
        // A body that was never polled does not start after the deadline.
        let polled = if before.is_some() && !*this.has_begun {
            Poll::Pending
        } else {
            *this.has_begun = true;
            body.as_mut().poll_inside(context, B::poll_frame)
        };
        let refusal = match &polled {
            Poll::Ready(_) => before.or_else(|| work.refusal()),
            // It is polled once more.
            Poll::Pending => before,
        };
        let frame = match (refusal, polled) {
            (None, Poll::Ready(frame)) => frame,
            (None, Poll::Pending) => {
                work.wake(context);
                return Poll::Pending;
            }
            // Also drops a frame that is ready only after the deadline.
            (Some(refusal), _) => {
                this.body.set(None);
                return Poll::Ready(match this.respond {
                    Some(respond) => {
                        let head = respond.respond(refusal.clone());
                        let trailers = grpc::trailers(head.headers(), &refusal);
                        Some(Ok(Frame::trailers(trailers)))
                    }
                    // The client has received the whole `content-length`.
                    None if *this.left == Some(0) => None,
                    None => Some(Err(refusal.into())),
                });
            }
        };
        match &frame {
            Some(Ok(frame)) if !frame.is_trailers() && !is_at_end(&body) => {
                let data = frame.data_ref().map_or(0, Buf::remaining);
                *this.left = this.left.map(|left| left.saturating_sub(data as u64));
                if *this.left == Some(0) {
                    // Some servers drop the body after the last expected byte, without polling
                    // again.
                    work.disarm();
                }
            }
            _ => Work::end(this.work),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref().and_then(Scope::get_ref);
        body.map_or(SizeHint::with_exact(0), B::size_hint)
    }
}

impl<B: Default, A> Default for ServerBody<B, A> {
    /// Returns a body that belongs to no request, for outer layers that create responses.
    fn default() -> Self {
        Self::outside(B::default())
    }
}

impl<B, A> fmt::Debug for ServerBody<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBody")
            .field("deadline", &self.work.as_ref().map(Work::deadline))
            .finish_non_exhaustive()
    }
}
