//! [`ServerBody`]: the deadline of a request around the body of its answer.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::context::Scope;

use super::grpc;
use super::refusal::Refusal;
use super::work::Work;

type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// The body of an answer of a [`ServerService`](super::ServerService). It is polled in the context of its request, and dropping it before its end cancels all work on
    /// that.
    ///
    /// When time is up, the body inside is polled once more and dropped. If the answer is one of gRPC, by its `content-type`, an error status follows as trailers: that of the
    /// answer that would have been given in the place of the service, or [`grpc_status`](super::grpc_status)'s if that answer has none. Otherwise an error follows, [`Refusal::Expired`], so that the connection breaks off and nobody takes the part for the
    /// whole; over HTTP/1.0, without a `content-length`, that looks like the end all the same.
    ///
    /// All work is told when time is up, but the body ends only when its server polls it: one may not do that while its client reads nothing.
    ///
    /// A layer around this one that throws the body away, to put another one in its place, cancels the work as a client who leaves does.
    pub struct ServerBody<B, A> {
        // Dropped before the body: who works on it is told first.
        work: Option<Work>,
        #[pin]
        body: Option<Scope<B>>,
        has_begun: bool,
        // How many bytes its server still waits for, where that is known.
        left: Option<u64>,
        // By what it ends, if its client reads a status after the body.
        answer: Option<A>,
    }
}

impl<B, A> ServerBody<B, A> {
    /// A body that belongs to no work.
    pub(super) fn outside(body: B) -> Self {
        Self {
            work: None,
            body: Some(Scope::outside(body)),
            has_begun: false,
            left: None,
            answer: None,
        }
    }
}

impl<B: Body, A: Clone> ServerBody<B, A> {
    /// The body of the service's answer, whose head this is, and which belongs to this work.
    pub(super) fn new(head: &Parts, body: Scope<B>, work: Option<Work>, answer: &A) -> Self {
        let size = body.get_ref().and_then(|body| body.size_hint().exact());
        let mut body = Self {
            work,
            left: size.or_else(|| told_length(&head.headers)),
            body: Some(body),
            has_begun: false,
            answer: grpc::ends_with_status(&head.headers).then(|| answer.clone()),
        };
        if body.is_at_end() {
            Work::end(&mut body.work);
        } else if let (Some(0), Some(work)) = (body.left, &mut body.work) {
            work.let_go();
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

fn told_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl<B, A> Body for ServerBody<B, A>
where
    B: Body,
    B::Error: Into<BoxError>,
    A: Fn(Refusal) -> Response<B>,
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
        let is_over = work.tell_if_over();
        // Nothing starts late.
        let polled = if is_over && !*this.has_begun {
            Poll::Pending
        } else {
            *this.has_begun = true;
            body.as_mut().poll_inside(context, B::poll_frame)
        };
        let frame = match polled {
            Poll::Ready(frame) if !work.tell_if_over() => frame,
            Poll::Pending if !is_over => {
                work.wake(context);
                return Poll::Pending;
            }
            // Also a frame that comes too late.
            _ => {
                this.body.set(None);
                return Poll::Ready(match this.answer {
                    Some(answer) => {
                        let head = answer(Refusal::Expired);
                        let trailers = grpc::trailers(head.headers(), &Refusal::Expired);
                        Some(Ok(Frame::trailers(trailers)))
                    }
                    // The client has all that it was told of.
                    None if *this.left == Some(0) => None,
                    None => Some(Err(Refusal::Expired.into())),
                });
            }
        };
        match &frame {
            Some(Ok(frame)) if !frame.is_trailers() && !is_at_end(&body) => {
                let data = frame.data_ref().map_or(0, Buf::remaining);
                *this.left = this.left.map(|left| left.saturating_sub(data as u64));
                if *this.left == Some(0) {
                    // Some servers do not look for more.
                    work.let_go();
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
    /// A body that belongs to no request, as layers around this one make them.
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
