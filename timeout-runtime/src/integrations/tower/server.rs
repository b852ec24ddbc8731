//! [`ServerLayer`]: takes the deadline of each request from a header, and cancels the request's
//! operations at that deadline, when the client disconnects, or when the server shuts down.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::context::CallContext;
use crate::time::Deadline;
use crate::token::CancelToken;

use super::body::ServerBody;
use super::grpc;
use super::header::DeadlineHeader;
use super::refusal::Refusal;
use super::respond::{DefaultResponse, Respond};
use super::server_future::ServerFuture;
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
/// - **Server shuts down.** [`upstream`](Self::upstream) takes a token that cancels all requests in
///   the same way, and refuses new ones.
/// - **Client disconnects.** The server drops the future of the request. That cancels all tokens in
///   the context, also those of operations that the service has started on other threads and tasks.
///   A server notices a disconnect only between two polls, so not while the service blocks its
///   thread, for example in a sync call. Over HTTP/1, hyper does not notice it while data of the
///   client is unread. A client disconnects at its own limit, too, possibly just before the
///   deadline here.
/// - **Whole response.** All this covers the [body of the response](Self#the-body-of-a-response) as
///   well. Operations that continue after the end of the response keep the deadline, but a
///   disconnect no longer cancels them.
///
/// If the layer responds in place of the service, the response is a status that follows the header:
/// see [`new`](Self::new). [`respond_with`](Self::respond_with) replaces it. A gRPC client always
/// gets a status.
///
/// # The body of a response
///
/// The layer wraps the body of each response, polls it in the context of its request, and applies
/// the deadline to it.
///
/// - **At the deadline.** The inner body is polled once more and dropped. If the response is a gRPC
///   response, by its `content-type`, an error status follows as trailers. Any other body ends with
///   the error [`Refusal::Expired`]. The server then breaks the connection, so that the client does
///   not take the part for the whole. Over HTTP/1.0 without a `content-length`, a client cannot see
///   the difference.
/// - **Server shuts down.** The same, with [`Refusal::Cancelled`].
/// - **Client disconnects.** Dropping the body before its end cancels all operations of the
///   request. An outer layer that replaces the body drops it, too.
/// - **Slow client.** The deadline cancels all operations of the request. The body itself ends only
///   when the server polls it, and a server may not do that while its client reads nothing.
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
///     Ok::<_, Infallible>(Response::new(format!("{} min", left.as_secs().div_ceil(60))))
/// });
/// let service = ServerLayer::new(DeadlineHeader::Envoy).layer(service);
///
/// let request = |left| {
///     let mut request = Request::new(());
///     DeadlineHeader::Envoy.write(request.headers_mut(), left);
///     request
/// };
/// let response = service.clone().oneshot(request(Duration::from_secs(7 * 60))).await?;
/// assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "7 min");
/// let response = service.oneshot(request(Duration::ZERO)).await?;
/// assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
/// # Ok::<(), Infallible>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ServerLayer<A = DefaultResponse> {
    header: DeadlineHeader,
    respond: A,
    ignores_malformed: bool,
    at_most: Duration,
    pub(super) upstream: Option<CancelToken>,
}

impl ServerLayer {
    /// Creates a layer that reads `header`, and responds with a status and an empty body in place
    /// of the service.
    ///
    /// - With [`DeadlineHeader::Grpc`], the response is a gRPC response with the status
    ///   `DEADLINE_EXCEEDED` (4) for [`Refusal::Expired`], `UNAVAILABLE` (14) for
    ///   [`Refusal::Cancelled`], and `INTERNAL` (13) for [`Refusal::Malformed`].
    /// - With any other header, the status is 504 (Gateway Timeout) for [`Refusal::Expired`], 503
    ///   (Service Unavailable) for [`Refusal::Cancelled`], and 400 (Bad Request) for
    ///   [`Refusal::Malformed`].
    ///
    /// [`respond_with`](Self::respond_with) replaces this response. The default response needs a
    /// body type that implements [`Default`].
    #[must_use]
    pub fn new(header: DeadlineHeader) -> Self {
        Self {
            respond: DefaultResponse::new(&header),
            header,
            ignores_malformed: false,
            at_most: Duration::MAX,
            upstream: None,
        }
    }
}

impl<A> ServerLayer<A> {
    /// Calls `respond` to create the responses in place of the service.
    ///
    /// If the deadline or a cancellation ends a gRPC stream early, the layer sends the `grpc-`
    /// headers of the response for the refusal as trailers.
    ///
    /// A gRPC client takes a response without a status, or with `grpc-status: 0`, for a complete
    /// one. The layer therefore adds the default status to such trailers, and to the response to a
    /// request whose `content-type` begins with `application/grpc`. An error status that `respond`
    /// sets is kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    /// use http::{Request, Response, StatusCode};
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let layer = ServerLayer::new(DeadlineHeader::Envoy).respond_with(|refusal: Refusal| {
    ///     let mut response = Response::new(format!("sorry: {refusal}"));
    ///     *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    ///     response
    /// });
    /// let service = service_fn(async |_: Request<()>| {
    ///     Ok::<_, Infallible>(Response::new(String::new()))
    /// });
    /// let mut late = Request::new(());
    /// DeadlineHeader::Envoy.write(late.headers_mut(), Duration::ZERO);
    /// let response = layer.layer(service).oneshot(late).await?;
    /// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// # Ok::<(), Infallible>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn respond_with<F, B>(self, respond: F) -> ServerLayer<F>
    where
        F: Fn(Refusal) -> Response<B>,
    {
        ServerLayer {
            header: self.header,
            respond,
            ignores_malformed: self.ignores_malformed,
            at_most: self.at_most,
            upstream: self.upstream,
        }
    }

    /// Cancels all requests with `token`, and refuses new ones from then on. For a shutdown.
    ///
    /// The tokens of the calls are cancelled with the cause and the reason of `token`. A request
    /// then ends as at its deadline, with [`Refusal::Cancelled`]: by default with status 503, over
    /// gRPC with `UNAVAILABLE`. The response to such a request does not tell whether it was carried
    /// out. Operations that continue after the end of the response are cancelled, too.
    ///
    /// If this is called again, any of the tokens cancels the requests.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use http::{Request, Response, StatusCode};
    /// use timeout_runtime::CancelToken;
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let shutdown = CancelToken::new();
    /// let layer = ServerLayer::new(DeadlineHeader::Envoy).upstream(&shutdown);
    /// let service = layer.layer(service_fn(async |_: Request<()>| {
    ///     std::future::pending::<Result<Response<String>, Infallible>>().await
    /// }));
    ///
    /// let request = service.clone().oneshot(Request::new(()));
    /// let (response, ()) = tokio::join!(request, async { shutdown.cancel() });
    /// assert_eq!(response?.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// let response = service.oneshot(Request::new(())).await?;
    /// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// # Ok::<(), Infallible>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn upstream(mut self, token: &CancelToken) -> Self {
        self.upstream = Some(match &self.upstream {
            Some(other) => CancelToken::linked([other, token]),
            None => token.clone(),
        });
        self
    }

    /// Treats an invalid header as absent. By default, a request with an invalid header is refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use http::{HeaderValue, Request, Response};
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let service = service_fn(async |_: Request<()>| {
    ///     Ok::<_, Infallible>(Response::new(String::new()))
    /// });
    /// let mut request = Request::new(());
    /// request.headers_mut().insert("grpc-timeout", HeaderValue::from_static("soon"));
    /// let layer = ServerLayer::new(DeadlineHeader::Grpc).ignore_malformed();
    /// let response = layer.layer(service).oneshot(request).await?;
    /// assert_eq!(response.headers().get("grpc-status"), None); // the response of the service
    /// # Ok::<(), Infallible>(()) }).unwrap();
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    /// use http::{Request, Response, StatusCode};
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, ServerLayer};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let service = service_fn(async |_: Request<()>| {
    ///     std::future::pending::<Result<Response<String>, Infallible>>().await
    /// });
    /// let layer = ServerLayer::new(DeadlineHeader::Envoy).at_most(Duration::from_millis(5));
    /// let response = layer.layer(service).oneshot(Request::new(())).await?; // without a header
    /// assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    /// # Ok::<(), Infallible>(()) }).unwrap();
    /// ```
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
    /// let layer = ServerLayer::new(DeadlineHeader::Envoy).at_most(Duration::from_millis(50));
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

    /// Whether the layer's token is cancelled.
    fn is_cancelled(&self) -> bool {
        self.upstream
            .as_ref()
            .is_some_and(CancelToken::is_cancelled)
    }

    /// Returns the deadline of a request with these headers.
    fn deadline(&self, headers: &HeaderMap) -> Result<Deadline, Refusal> {
        if self.is_cancelled() {
            return Err(Refusal::Cancelled);
        }
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
            .field("upstream", &self.upstream)
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
    A: Respond<ResBody> + Clone,
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
        let (work, context) = Work::new(deadline, self.layer.upstream.as_ref());
        let future = context.run(|| self.service.call(request));
        ServerFuture::new(work, context.enclose(future), method, respond, is_grpc)
    }
}
