//! [`ServerBody`]: the deadline of a request around the body of its answer.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::context::Scope;

use super::server::Refusal;
use super::work::Work;

type BoxError = Box<dyn Error + Send + Sync>;

pin_project! {
    /// The body of an answer of a [`ServerService`](super::ServerService). It is polled in the context of its request, and dropping it before its end cancels all work on
    /// that.
    ///
    /// When time is up, the body inside is polled once more and dropped. What follows is made of the answer that would have been given in the place of the service: if that
    /// has a `grpc-status`, its headers are the trailers; otherwise an error follows, [`Refusal::Expired`], so that the connection breaks off and nobody takes the part for the whole.
    ///
    /// All work is told when time is up, but the body ends only when its server polls it: one may not do that while its client reads nothing.
    pub struct ServerBody<B, A> {
        // Dropped before the body: who works on it is told first.
        work: Option<Work>,
        #[pin]
        body: Option<Scope<B>>,
        answer: A,
    }
}

impl<B: Body, A: Clone> ServerBody<B, A> {
    /// The body of the service's answer, which belongs to this work.
    pub(super) fn new(body: Scope<B>, mut work: Option<Work>, answer: &A) -> Self {
        if is_at_end(&body) {
            Work::end(&mut work);
        }
        Self {
            work,
            body: Some(body),
            answer: answer.clone(),
        }
    }

    /// The answer in the place of the service.
    pub(super) fn refusal(refusal: Refusal, answer: &A) -> Response<Self>
    where
        A: Fn(Refusal) -> Response<B>,
    {
        answer(refusal).map(|body| Self::new(Scope::outside(body), None, answer))
    }
}

fn is_at_end<B: Body>(body: &Scope<B>) -> bool {
    body.get_ref().is_none_or(B::is_end_stream)
}

/// What follows when time is up, if this is how that is answered.
fn late<B: Body>(answer: Response<B>) -> Result<Frame<B::Data>, BoxError> {
    let mut headers = answer.into_parts().0.headers;
    if headers.contains_key("grpc-status") {
        headers.remove(CONTENT_TYPE);
        Ok(Frame::trailers(headers))
    } else {
        Err(Refusal::Expired.into())
    }
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
        let is_over = this.work.as_ref().is_some_and(Work::tell_if_over);
        let polled = body.as_mut().poll_inside(context, B::poll_frame);
        let Some(work) = this.work.as_mut() else {
            return polled.map_err(Into::into);
        };
        let frame = match polled {
            Poll::Ready(frame) if !work.is_over() => frame,
            Poll::Pending if !is_over => {
                work.wake(context);
                return Poll::Pending;
            }
            // Also a frame that comes too late.
            _ => {
                this.body.set(None);
                return Poll::Ready(Some(late((this.answer)(Refusal::Expired))));
            }
        };
        let is_last = match &frame {
            Some(Ok(frame)) => frame.is_trailers() || is_at_end(&body),
            Some(Err(_)) | None => true,
        };
        if is_last {
            Work::end(this.work);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(is_at_end)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref().and_then(Scope::get_ref);
        body.map_or(SizeHint::with_exact(0), B::size_hint)
    }
}

impl<B, A> fmt::Debug for ServerBody<B, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBody")
            .field("deadline", &self.work.as_ref().map(Work::deadline))
            .finish_non_exhaustive()
    }
}
