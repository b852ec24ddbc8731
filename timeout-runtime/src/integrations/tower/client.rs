//! [`ClientLayer`]: sends the remaining time of the current deadline with each request.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::context::CallContext;
use crate::outcome::Cause;
use crate::time::Deadline;
use crate::token::CancelToken;

use super::header::DeadlineHeader;

/// Sends the remaining time of the enclosing call with each request. Does not send a request after
/// the deadline or the cancellation of its call.
///
/// The layer uses the context of [`Service::call`], or the [`CallContext`] in the request's
/// extensions if there is one. The header holds the remaining time at that call. Without a
/// deadline, the request is sent unchanged. A request that already has the header keeps it if its
/// time is shorter.
///
/// A context in the extensions stays there, so that inner layers and copies of the request, such as
/// those of a retry layer, use the same context. Each header holds the remaining time at the call
/// of its layer.
///
/// A layer that calls this one from another task, such as tower's `Buffer`, loses the context of
/// the caller. In that case, put the context into the extensions.
///
/// The layer does not limit the wait for the response. The limit of the enclosing call does.
///
/// # Examples
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
///     Ok::<_, Infallible>(DeadlineHeader::Grpc.read(request.headers()))
/// });
/// let client = ClientLayer::new(DeadlineHeader::Grpc).layer(network);
///
/// let until = |limit| CallContext::current().with_deadline(Deadline::after(limit));
/// let request = client.clone().oneshot(Request::new(()));
/// let sent = until(Duration::from_secs(5)).scope(request).await.unwrap();
/// assert!(sent.unwrap().is_some_and(|left| left <= Duration::from_secs(5)));
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
    /// Creates a layer that sends the remaining time in `header`.
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
    /// Sets the header, unless it already holds a shorter time.
    fn set_header(&self, left: Duration, headers: &mut HeaderMap) {
        let present = self.header.read(headers);
        if !matches!(present, Ok(Some(present)) if present <= left) {
            self.header.write(headers, left);
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
                stage: Stage::NotSent { cause },
            },
            Ok(left) => {
                if let Some(left) = left {
                    self.set_header(left, request.headers_mut());
                }
                let future = self.service.call(request);
                ClientFuture {
                    stage: Stage::Sent { future },
                }
            }
        }
    }
}

/// Returns the remaining time of the current context, or the cause if it has ended.
fn left() -> Result<Option<Duration>, Cause> {
    if let Some(cause) = CancelToken::current().cause() {
        return Err(cause.entering());
    }
    match Deadline::current().remaining() {
        // The deadline has passed, but the timer has not cancelled the token yet.
        Some(Duration::ZERO) => Err(Cause::DeadlineExceeded),
        left => Ok(left),
    }
}

pin_project! {
    /// The future of a [`ClientService`]; resolves to the response.
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct ClientFuture<F> {
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    #[project = StagePinned]
    #[derive(Debug)]
    enum Stage<F> {
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
        match self.project().stage.project() {
            StagePinned::NotSent { cause } => Poll::Ready(Err(ClientError::NotSent(*cause))),
            StagePinned::Sent { future } => future.poll(context).map_err(ClientError::Service),
        }
    }
}

/// The error of a [`ClientService`].
///
/// A tonic client returns it as the [`source`](std::error::Error::source) of its status.
///
/// ```
/// use std::io;
/// use timeout_runtime::Cause;
/// use timeout_runtime::integrations::tower::ClientError;
///
/// /// Whether another attempt has a chance.
/// fn is_worth_a_retry(error: &ClientError<io::Error>) -> bool {
///     matches!(error, ClientError::Service(_))
/// }
///
/// assert!(is_worth_a_retry(&ClientError::Service(io::ErrorKind::ConnectionReset.into())));
/// assert!(!is_worth_a_retry(&ClientError::NotSent(Cause::DeadlineExceeded)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError<E> {
    /// The request was not sent: the deadline of its call had passed, or the call was cancelled.
    #[error("the request was not sent: {0}")]
    NotSent(Cause),
    /// The inner service returned an error.
    #[error("the request failed")]
    Service(#[source] E),
}
