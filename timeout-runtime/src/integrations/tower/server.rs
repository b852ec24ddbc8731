//! [`ServerLayer`]: the deadline of a request around the service that answers it.

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
use crate::deadline::Deadline;

use super::body::ServerBody;
use super::grpc::{self, grpc_status};
use super::header::DeadlineHeader;
use super::refusal::{Refusal, http_status};
use super::waiting::WaitingServerLayer;
use super::work::Work;

/// Reads the deadline of each request, and opens a [`CallContext`] with it around the service.
///
/// Annotated calls in the service take part in the deadline by themselves; tasks and threads of its own by [`CallContext::current`]. A
/// context that is open around the layer stays in force: the nearest deadline counts, and its token is heard.
/// A context among the request's extensions, for a [`ClientLayer`](super::ClientLayer) in the same process, ends here.
///
/// - A request that has expired when it comes does not reach the service. If it has by the time that its future is first polled, that of the
///   service is not polled at all.
/// - When its time is up, the calls inside are told by their tokens, the service's future is polled once more and dropped. What it answers
///   from then on is too late.
/// - When the client goes away, its server drops the future of the request: then all tokens inside are cancelled, also of what the
///   service has started elsewhere in this context. A server sees that only between two polls, so not while the service blocks its
///   thread, as by a sync call; hyper's does not see it over HTTP/1 while part of what the client has sent is unread. A client whose own
///   limit has passed goes away as well, perhaps just before the deadline here.
/// - All this covers the whole answer, its body too: see [`ServerBody`]. What goes on in this context after the end of the answer still has the deadline, but is not told
///   when the client goes away.
///
/// How it answers in the place of the service is up to a function, as [`grpc_status`] and [`http_status`] are. A gRPC client gets a
/// status from each: see [`new`](Self::new).
///
/// # Where the time of a request starts
///
/// It starts when the layer's service is called. Tower asks a service whether it is ready before
/// that, without the request, so the layer cannot know whether a request waits meanwhile. Behind a
/// `ConcurrencyLimit` or a `RateLimit` inside the layer, such a wait is not part of the deadline.
///
/// - [`count_waiting`](Self::count_waiting) moves the wait into the call, where the deadline covers it.
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
/// let answer = service.clone().oneshot(request(Duration::from_secs(7))).await?;
/// assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "7 s");
/// let answer = service.oneshot(request(Duration::ZERO)).await?;
/// assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
/// # Ok::<(), Infallible>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ServerLayer<A> {
    header: DeadlineHeader,
    answer: A,
    ignores_malformed: bool,
    at_most: Duration,
}

impl<B: Default> ServerLayer<fn(Refusal) -> Response<B>> {
    /// For gRPC: the header `grpc-timeout`, and answers by [`grpc_status`].
    #[must_use]
    pub fn grpc() -> Self {
        Self::new(DeadlineHeader::grpc(), grpc_status)
    }

    /// For plain HTTP: this header, and answers by [`http_status`].
    #[must_use]
    pub fn http(header: DeadlineHeader) -> Self {
        Self::new(header, http_status)
    }
}

impl<A> ServerLayer<A> {
    /// With this header, and answers by this function.
    ///
    /// A gRPC client takes an answer without a status, or with `grpc-status: 0`, for a whole one.
    /// The layer therefore adds the status of [`grpc_status`] to the headers of such an answer:
    /// if the `content-type` of the request begins with `application/grpc`, and at the end of a
    /// gRPC stream that the deadline cuts. An error status among the function's headers stays as it is.
    ///
    /// ```
    /// use http::Response;
    /// use timeout_runtime::integrations::tower::{DeadlineHeader, Refusal, ServerLayer};
    ///
    /// let layer = ServerLayer::new(DeadlineHeader::envoy(), |refusal: Refusal| {
    ///     let mut answer = Response::new(format!("sorry: {refusal}"));
    ///     *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    ///     answer
    /// });
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn new<B>(header: DeadlineHeader, answer: A) -> Self
    where
        A: Fn(Refusal) -> Response<B>,
    {
        Self {
            header,
            answer,
            ignores_malformed: false,
            at_most: Duration::MAX,
        }
    }

    /// A request whose header cannot be read is served as if it had none. By default it is refused.
    #[must_use]
    pub fn ignore_malformed(mut self) -> Self {
        self.ignores_malformed = true;
        self
    }

    /// Gives each request this limit, whatever its header says, and also without a header. By default
    /// a request without header has no deadline.
    ///
    /// The limit starts when this service is called, not when the request begins to wait for a ready
    /// service: see [where the time starts](ServerLayer#where-the-time-of-a-request-starts).
    #[must_use]
    pub fn at_most(mut self, limit: Duration) -> Self {
        self.at_most = limit;
        self
    }

    /// Also counts how long a request waits until the service inside is ready.
    ///
    /// The layer's service is then always ready, and each call waits on a clone of the service inside.
    /// A request whose time passes while it waits is answered in the place of the service and never
    /// reaches it. The number of waiting requests is bounded by their deadlines only, and load
    /// shedding around this layer sheds nothing.
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

    /// Until when a request with these headers is to be answered.
    fn deadline(&self, headers: &HeaderMap) -> Result<Deadline, Refusal> {
        let told = match self.header.read(headers) {
            Err(error) if !self.ignores_malformed => return Err(Refusal::Malformed(error)),
            told => told.ok().flatten(),
        };
        let limit = self.at_most.min(told.unwrap_or(Duration::MAX));
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

/// A service inside a [`ServerLayer`].
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
        // That of a client in the same process: what the service sends belongs to this request.
        request.extensions_mut().remove::<CallContext>();
        let answer = self.layer.answer.clone();
        let method = request.method().clone();
        let wants_status = grpc::wants_status(request.headers());
        let deadline = match self.layer.deadline(request.headers()) {
            Ok(deadline) => deadline,
            Err(refusal) => return ServerFuture::refused(refusal, answer, wants_status),
        };
        let (work, context) = Work::new(deadline);
        let future = context.run(|| self.service.call(request));
        ServerFuture {
            work: Some(work),
            future: Some(context.scope(future)),
            method,
            wants_status,
            has_begun: false,
            refusal: None,
            answer,
        }
    }
}

pin_project! {
    /// The answer of a [`ServerService`], to be awaited. Dropping it before it is there cancels all work on the request.
    #[must_use = "futures do nothing unless polled"]
    pub struct ServerFuture<F, A> {
        // Dropped before the future: who works on it is told first.
        work: Option<Work>,
        #[pin]
        future: Option<Scope<F>>,
        method: Method,
        wants_status: bool,
        has_begun: bool,
        refusal: Option<Refusal>,
        answer: A,
    }
}

impl<F, A> ServerFuture<F, A> {
    fn refused(refusal: Refusal, answer: A, wants_status: bool) -> Self {
        Self {
            work: None,
            future: None,
            method: Method::GET,
            wants_status,
            has_begun: false,
            refusal: Some(refusal),
            answer,
        }
    }
}

/// The answer in the place of the service.
fn refused<A, B>(refusal: &Refusal, answer: &A, wants_status: bool) -> Response<ServerBody<B, A>>
where
    A: Fn(Refusal) -> Response<B>,
{
    let mut answer = answer(refusal.clone());
    if wants_status {
        grpc::ensure_status(answer.headers_mut(), refusal);
    }
    answer.map(ServerBody::outside)
}

/// Servers leave the body of other answers alone: the client has all of it with the head.
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
                panic!("a finished request was polled again");
            };
            return Poll::Ready(Ok(refused(&refusal, this.answer, *this.wants_status)));
        };
        let is_over = work.tell_if_over();
        // Nothing starts late.
        let polled = if is_over && !*this.has_begun {
            Poll::Pending
        } else {
            *this.has_begun = true;
            future.as_mut().poll(context)
        };
        let ending = match polled {
            Poll::Ready(Ok(answer)) if !work.tell_if_over() => {
                let (head, body) = answer.into_parts();
                if !may_have_body(this.method, head.status) {
                    Work::end(this.work);
                }
                let body = future.hand_over(body);
                let body = ServerBody::new(&head, body, this.work.take(), this.answer);
                Ok(Response::from_parts(head, body))
            }
            Poll::Ready(Err(error)) if !work.tell_if_over() => {
                Work::end(this.work);
                Err(error)
            }
            Poll::Pending if !is_over => {
                work.wake(context);
                return Poll::Pending;
            }
            late => {
                // Also an answer that comes too late is dropped in the context.
                drop(future.hand_over(late));
                Ok(refused(&Refusal::Expired, this.answer, *this.wants_status))
            }
        };
        this.future.set(None);
        Poll::Ready(ending)
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
