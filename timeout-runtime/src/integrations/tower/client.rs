//! [`ClientLayer`]: requests tell what is left of their caller's deadline.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::context::CallContext;
use crate::deadline::Deadline;
use crate::error::Cause;
use crate::token::CancelToken;

use super::header::DeadlineHeader;

/// Sends what is left of the deadline of the call that a request is made in, and does not send a request that comes too late.
///
/// The context is the one around [`Service::call`], or a [`CallContext`] among the request's extensions, in its place; what is told is what
/// is left at that call. A request made without a deadline is sent as it is. One that has the header already keeps it if that tells less.
///
/// The context stays among the extensions. Further layers inside this one and copies of the request,
/// such as those of a retry layer, see the same context. Each header tells what is left when its
/// layer is called. A layer in between that calls from another task, as tower's `Buffer` does, leaves
/// the context around it: there, put the context among the extensions.
///
/// The layer does not end the wait for the answer: that is up to the call around it.
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::Request;
/// use timeout_runtime::integrations::tower::{ClientError, ClientLayer, DeadlineHeader};
/// use timeout_runtime::{Deadline, CallContext};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let network = service_fn(async |request: Request<()>| {
///     Ok::<_, Infallible>(DeadlineHeader::grpc().read(request.headers()))
/// });
/// let client = ClientLayer::new(DeadlineHeader::grpc()).layer(network);
///
/// let until = |limit| CallContext::current().with_deadline(Deadline::after(limit));
/// let request = client.clone().oneshot(Request::new(()));
/// let told = until(Duration::from_secs(5)).scope(request).await.unwrap();
/// assert!(told.unwrap() <= Some(Duration::from_secs(5)));
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(until(Duration::ZERO));
/// let error = client.oneshot(request).await.unwrap_err();
/// assert!(matches!(error, ClientError::NotSent(_)));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct ClientLayer {
    header: DeadlineHeader,
}

impl ClientLayer {
    /// With this header.
    #[must_use]
    pub const fn new(header: DeadlineHeader) -> Self {
        Self { header }
    }
}

impl<S> Layer<S> for ClientLayer {
    type Service = ClientService<S>;

    fn layer(&self, service: S) -> ClientService<S> {
        ClientService {
            service,
            header: self.header.clone(),
        }
    }
}

/// A service inside a [`ClientLayer`].
#[derive(Clone, Debug)]
pub struct ClientService<S> {
    service: S,
    header: DeadlineHeader,
}

impl<S> ClientService<S> {
    fn tell(&self, left: Duration, headers: &mut HeaderMap) {
        let told = self.header.read(headers);
        if !matches!(told, Ok(Some(told)) if told <= left) {
            headers.insert(self.header.name().clone(), self.header.value(left));
        }
    }
}

impl<S, B> Service<Request<B>> for ClientService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = ClientError<S::Error>;
    type Future = ClientFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let ready = self.service.poll_ready(context);
        ready.map_err(ClientError::Service)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let left = match request.extensions().get::<CallContext>() {
            Some(context) => context.run(left),
            None => left(),
        };
        match left {
            Err(cause) => ClientFuture {
                way: Way::NotSent { cause },
            },
            Ok(left) => {
                if let Some(left) = left {
                    self.tell(left, request.headers_mut());
                }
                let future = self.service.call(request);
                ClientFuture {
                    way: Way::Sent { future },
                }
            }
        }
    }
}

/// How long what is sent here may take, or why it is not sent.
fn left() -> Result<Option<Duration>, Cause> {
    if let Some(cause) = CancelToken::current().cause() {
        return Err(cause.entering());
    }
    match Deadline::current().remaining() {
        // The timer may not have got to it yet.
        Some(Duration::ZERO) => Err(Cause::DeadlineExceeded),
        left => Ok(left),
    }
}

pin_project! {
    /// The answer of a [`ClientService`], to be awaited.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct ClientFuture<F> {
        #[pin]
        way: Way<F>,
    }
}

pin_project! {
    #[project = WayPinned]
    #[derive(Debug)]
    enum Way<F> {
        NotSent { cause: Cause },
        Sent { #[pin] future: F },
    }
}

impl<F, T, E> Future for ClientFuture<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, ClientError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().way.project() {
            WayPinned::NotSent { cause } => Poll::Ready(Err(ClientError::NotSent(*cause))),
            WayPinned::Sent { future } => future.poll(context).map_err(ClientError::Service),
        }
    }
}

/// Why a request has no answer. A client of tonic's gives it as the [`source`](std::error::Error::source) of its status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError<E> {
    /// It was not sent: the deadline of its call had passed, or the call was cancelled.
    #[error("the request was not sent: {0}")]
    NotSent(Cause),
    /// The error of the service that was to send it.
    #[error("the request got no answer")]
    Service(#[source] E),
}
