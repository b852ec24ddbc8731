//! [`ServerLayer`]: takes the deadline of each request from a header, and cancels the request's
//! operations at that deadline or when the client disconnects.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::context::{CallContext, Scope};
use crate::time::Deadline;

use super::body::ServerBody;
use super::grpc::{self, grpc_status};
use super::header::DeadlineHeader;
use super::refusal::{Refusal, http_status};
use super::waiting::WaitingServerLayer;
use super::work::Work;

/// Reads the deadline of each request, and runs the service in a [`CallContext`] with it.
///
/// Annotated calls in the service inherit the deadline. Tasks and threads of the service inherit it
/// with [`CallContext::current`]. A context around the layer stays in effect: the nearest deadline
/// applies, and its token also cancels the calls. The layer removes a [`CallContext`] from the
/// request's extensions: it is meant for a [`ClientLayer`](super::ClientLayer) in the same process.
///
/// - **Expired on arrival.** The request does not reach the service. If the deadline passes before
///   the future is first polled, the service's future is not polled at all.
/// - **At the deadline.** The tokens of the calls are cancelled, and the service's future is polled
///   once more and dropped. A response that it returns from then on is dropped.
/// - **Client disconnects.** The server drops the future of the request. That cancels all tokens in
///   the context, also those of operations that the service has started on other threads and tasks.
///   A server notices a disconnect only between two polls, so not while the service blocks its
///   thread, for example in a sync call. Over HTTP/1, hyper does not notice it while data of the
///   client is unread. A client disconnects at its own limit, too, possibly just before the
///   deadline here.
/// - **Whole response.** All this covers the body of the response as well: see [`ServerBody`].
///   Operations that continue after the end of the response keep the deadline, but a disconnect no
///   longer cancels them.
///
/// A function creates the response if the layer responds instead of the service. [`grpc_status`]
/// and
/// [`http_status`] are such functions. A gRPC client always gets a status: see [`new`](Self::new).
///
/// # Where the time of a request starts
///
/// It starts when the layer's service is called. Before that, Tower checks that the service is
/// ready, without the request, so the layer cannot know whether a request waits. If a
/// `ConcurrencyLimit` or a `RateLimit` is inside the layer, the deadline does not cover such a
/// wait.
///
/// - [`count_waiting`](Self::count_waiting) moves the wait into the call, where the deadline covers
///   it.
/// - Tower's `load_shed` around the layer refuses a request that would have to wait.
/// - A limit outside the layer makes requests wait there, before their time starts.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::{Request, Response, StatusCode};
/// use http_body_util::BodyExt;
/// use timeout_runtime::Deadline;
/// use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let service = service_fn(async |_: Request<()>| {
///     let left = Deadline::current().remaining().expect("there is a header");
///     Ok::<_, Infallible>(Response::new(format!("{} s", left.as_secs_f32().ceil())))
/// });
/// let service = ServerLayer::http(DeadlineHeader::envoy()).layer(service);
///
/// let request = |left| {
///     let header = DeadlineHeader::envoy();
///     Request::get("/").header(header.name(), header.value(left)).body(()).unwrap()
/// };
/// let response = service.clone().oneshot(request(Duration::from_secs(7))).await?;
/// assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "7 s");
/// let response = service.oneshot(request(Duration::ZERO)).await?;
/// assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
/// # Ok::<(), Infallible>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ServerLayer<A> {
    header: DeadlineHeader,
    respond: A,
    ignores_malformed: bool,
    at_most: Duration,
}

impl<B: Default> ServerLayer<fn(Refusal) -> Response<B>> {
    /// Creates a layer for gRPC, with the header `grpc-timeout` and the responses of
    /// [`grpc_status`].
    #[must_use]
    pub fn grpc() -> Self {
        Self::new(DeadlineHeader::grpc(), grpc_status)
    }

    /// Creates a layer for plain HTTP, with the given header and the responses of [`http_status`].
    #[must_use]
    pub fn http(header: DeadlineHeader) -> Self {
        Self::new(header, http_status)
    }
}

impl<A> ServerLayer<A> {
    /// Creates a layer that reads `header`, and calls `respond` to respond instead of the service.
    ///
    /// A gRPC client takes a response without a status, or with `grpc-status: 0`, for a complete
    /// one. The layer therefore adds the status of [`grpc_status`] to such a response: if the
    /// `content-type` of the request begins with `application/grpc`, and at the end of a gRPC
    /// stream that the deadline ends early. An error status that `respond` sets is kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use http::Response;
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
    ///
    /// let layer = ServerLayer::new(DeadlineHeader::envoy(), |refusal: Refusal| {
    ///     let mut response = Response::new(format!("sorry: {refusal}"));
    ///     *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    ///     response
    /// });
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn new<B>(header: DeadlineHeader, respond: A) -> Self
    where
        A: Fn(Refusal) -> Response<B>,
    {
        Self {
            header,
            respond,
            ignores_malformed: false,
            at_most: Duration::MAX,
        }
    }

    /// Treats an invalid header as absent. By default, a request with an invalid header is refused.
    #[must_use]
    pub fn ignore_malformed(mut self) -> Self {
        self.ignores_malformed = true;
        self
    }

    /// Limits the time of every request, with or without a header. A shorter time in the header
    /// applies. By default, a request without a header has no deadline.
    ///
    /// The limit starts when the layer's service is called, not when the request starts to wait for
    /// a ready service: see
    /// [where the time starts](ServerLayer#where-the-time-of-a-request-starts).
    #[must_use]
    pub fn at_most(mut self, limit: Duration) -> Self {
        self.at_most = limit;
        self
    }

    /// Makes the deadline also cover the wait until the inner service is ready.
    ///
    /// The layer's service is then always ready, and each call waits on a clone of the inner
    /// service. If the deadline passes during the wait, the request never reaches the service. The
    /// layer does not bound the number of waiting requests, and load shedding around it never
    /// refuses a request.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    /// use http::{Request, Response, StatusCode};
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
    /// use tower::{ServiceBuilder, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let layer = ServerLayer::http(DeadlineHeader::envoy()).at_most(Duration::from_millis(50));
    /// let service = ServiceBuilder::new()
    ///     .layer(layer.count_waiting())
    ///     .concurrency_limit(1)
    ///     .service(service_fn(async |_: Request<()>| {
    ///         std::future::pending::<Result<Response<String>, Infallible>>().await
    ///     }));
    ///
    /// let ask = || service.clone().oneshot(Request::new(()));
    /// let (first, second) = tokio::join!(ask(), ask()); // both after 50 ms
    /// assert_eq!(first?.status(), StatusCode::GATEWAY_TIMEOUT);
    /// assert_eq!(second?.status(), StatusCode::GATEWAY_TIMEOUT);
    /// # Ok::<(), Infallible>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn count_waiting(self) -> WaitingServerLayer<A> {
        WaitingServerLayer { layer: self }
    }

    /// Returns the deadline of a request with these headers.
    fn deadline(&self, headers: &HeaderMap) -> Result<Deadline, Refusal> {
        let left = match self.header.read(headers) {
            Err(error) if !self.ignores_malformed => return Err(Refusal::Malformed(error)),
            left => left.ok().flatten(),
        };
        let limit = self.at_most.min(left.unwrap_or(Duration::MAX));
        let deadline = Deadline::after(limit).min(Deadline::current());
        if deadline.has_passed() {
            return Err(Refusal::Expired);
        }
        Ok(deadline)
    }
}

impl<A> fmt::Debug for ServerLayer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLayer")
            .field("header", &self.header)
            .field("ignores_malformed", &self.ignores_malformed)
            .field("at_most", &self.at_most)
            .finish_non_exhaustive()
    }
}

impl<S, A: Clone> Layer<S> for ServerLayer<A> {
    type Service = ServerService<S, A>;

    fn layer(&self, service: S) -> Self::Service {
        ServerService {
            service,
            layer: self.clone(),
        }
    }
}

/// The service of a [`ServerLayer`].
#[derive(Clone, Debug)]
pub struct ServerService<S, A> {
    service: S,
    layer: ServerLayer<A>,
}

impl<S, A, ReqBody, ResBody> Service<Request<ReqBody>> for ServerService<S, A>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    A: Fn(Refusal) -> Response<ResBody> + Clone,
    ResBody: Body,
{
    type Response = Response<ServerBody<ResBody, A>>;
    type Error = S::Error;
    type Future = ServerFuture<S::Future, A>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        // The context in the extensions is that of a client in the same process. Requests that the
        // service sends must use the context of this request.
        request.extensions_mut().remove::<CallContext>();
        let respond = self.layer.respond.clone();
        let method = request.method().clone();
        let is_grpc = grpc::is_grpc(request.headers());
        let deadline = match self.layer.deadline(request.headers()) {
            Ok(deadline) => deadline,
            Err(refusal) => return ServerFuture::refused(refusal, respond, is_grpc),
        };
        let (work, context) = Work::new(deadline);
        let future = context.run(|| self.service.call(request));
        ServerFuture {
            work: Some(work),
            future: Some(context.scope(future)),
            method,
            is_grpc,
            has_begun: false,
            refusal: None,
            respond,
        }
    }
}

pin_project! {
    /// The future of a [`ServerService`]; resolves to the response.
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
    fn refused(refusal: Refusal, respond: A, is_grpc: bool) -> Self {
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
    A: Fn(Refusal) -> Response<B>,
{
    let mut response = respond(refusal.clone());
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
    A: Fn(Refusal) -> Response<B> + Clone,
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
        let is_over = work.cancel_if_expired();
        // A future that was never polled does not start after the deadline.
        let polled = if is_over && !*this.has_begun {
            Poll::Pending
        } else {
            *this.has_begun = true;
            future.as_mut().poll(context)
        };
        let result = match polled {
            Poll::Ready(Ok(response)) if !work.cancel_if_expired() => {
                let (head, body) = response.into_parts();
                if !may_have_body(this.method, head.status) {
                    Work::end(this.work);
                }
                let body = future.hand_over(body);
                let body = ServerBody::new(&head, body, this.work.take(), this.respond);
                Ok(Response::from_parts(head, body))
            }
            Poll::Ready(Err(error)) if !work.cancel_if_expired() => {
                Work::end(this.work);
                Err(error)
            }
            Poll::Pending if !is_over => {
                work.wake(context);
                return Poll::Pending;
            }
            late => {
                // Drops a late response in the context, like the future.
                drop(future.hand_over(late));
                Ok(refuse(&Refusal::Expired, this.respond, *this.is_grpc))
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
