//! Limits without a policy: [`within`], [`within_blocking`], and the same as methods of futures.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::call::convert::IntoReturn;
use crate::call::options::CallOptions;
use crate::call::returned_future::{ReturnedFutureCall, returned_future};
use crate::call::worker;
use crate::outcome::Returned;
use crate::outcome::TimeoutError;
use crate::sync::lock;
use crate::terms::{Policy, PolicyRef};
use crate::time::Deadline;
use crate::token::CancelToken;

/// Runs `future` within `limit`, as an annotated function would: its token is cancelled at the
/// limit, annotated calls inside inherit the deadline, and one event reports the outcome. The name
/// of the call is its place in the source, such as `src/client.rs:42:5`.
///
/// The clock starts at the first poll. At the limit the token is cancelled, the future is polled
/// once more, and dropped. A value that this last poll returns is the result. With a limit of zero
/// the future is not polled; [`Duration::MAX`] means no limit. Any output counts as a success in
/// events, also an `Err`: use [`Timeout`](crate::Timeout) to tell the two apart.
///
/// It works on any executor. On Tokio, paused time drives the limit.
///
/// # Errors
///
/// A [`TimeoutError`] if the limit or an inherited deadline passes first, or the enclosing call is
/// cancelled.
///
/// # Panics
///
/// If `future` panics, with that panic.
///
/// # Cancel safety
///
/// As safe as `future`: dropping the call cancels its token and drops `future`.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::within;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ready = within(Duration::from_secs(5), async { 7 }).await;
/// assert_eq!(ready, Ok(7));
///
/// let error = within(Duration::from_millis(10), std::future::pending::<()>()).await.unwrap_err();
/// assert!(error.is_timed_out());
/// assert!(error.name().contains(".rs:"));
/// # }
/// ```
#[track_caller]
pub fn within<F: Future>(
    limit: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, TimeoutError>> {
    Within::new(options_here().limit(limit), future)
}

/// Runs `op` on a worker thread within `limit`, for blocking code; the calling thread is parked
/// until the outcome. The name of the call is its place in the source, as with [`within`].
///
/// At the limit the token of `op` is cancelled and the caller gets its error. An operation that
/// ignores its token keeps running, abandoned. With a limit of zero it does not start;
/// [`Duration::MAX`] means no limit. Any value that `op` returns counts as a success in events,
/// also an `Err`: use [`Timeout::call`](crate::Timeout::call) to tell the two apart.
///
/// # Errors
///
/// A [`TimeoutError`] if the limit or an inherited deadline passes first, if the enclosing call is
/// cancelled, or if there is no worker.
///
/// # Panics
///
/// If `op` panics while the caller waits, with that panic.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::within_blocking;
///
/// let sum = within_blocking(Duration::from_secs(5), |_token| (1..=3).sum::<u32>());
/// assert_eq!(sum, Ok(6));
///
/// let slow = within_blocking(Duration::from_millis(10), |token| {
///     token.sleep(Duration::from_secs(60))
/// });
/// assert!(slow.unwrap_err().is_timed_out());
/// ```
#[track_caller]
pub fn within_blocking<T, F>(limit: Duration, op: F) -> Result<T, TimeoutError>
where
    F: FnOnce(CancelToken) -> T + Send + 'static,
    T: Send + 'static,
{
    worker::sync_worker(options_here().limit(limit), any_value, op)
}

/// Limits as methods of any future.
///
/// Each method returns a future whose output is the future's own, or a [`TimeoutError`] that says
/// why there is none, as [`within`] does. Panics and cancel safety are those of [`within`], too.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::{CancelToken, Deadline, TimeoutError, TimeoutFutureExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), TimeoutError> {
/// let shutdown = CancelToken::new();
/// let request = Deadline::after(Duration::from_secs(30));
///
/// let first = async { 1 }.within(Duration::from_secs(5)).await?;
/// let second = async { 2 }.within_deadline(request).await?;
/// let third = async { 3 }.with_cancel_token(&shutdown).await?;
/// assert_eq!(first + second + third, 6);
/// # Ok(())
/// # }
/// ```
pub trait TimeoutFutureExt: Future + Sized {
    /// Runs the future within `limit`: [`within`], with the call's place in the source as its name.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::TimeoutFutureExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let cut = std::future::pending::<()>().within(Duration::from_millis(10)).await;
    /// assert!(cut.unwrap_err().is_timed_out());
    /// # }
    /// ```
    #[track_caller]
    fn within(self, limit: Duration) -> Within<Self> {
        Within::new(options_here().limit(limit), self)
    }

    /// Runs the future until `deadline`: a [`Deadline`] or an instant. Several
    /// futures can share one deadline. The error [is "deadline
    /// exceeded"](TimeoutError::is_deadline_exceeded).
    ///
    /// In all else as [`within`]: a deadline that has passed refuses the future without a poll.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use timeout_runtime::TimeoutFutureExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let soon = Instant::now() + Duration::from_millis(10);
    /// let cut = std::future::pending::<()>().within_deadline(soon).await;
    /// assert!(cut.unwrap_err().is_deadline_exceeded());
    /// # }
    /// ```
    #[track_caller]
    fn within_deadline(self, deadline: impl Into<Deadline>) -> Within<Self> {
        Within::new(options_here().deadline(deadline.into()), self)
    }

    /// Runs the future until `token` is cancelled. When it is, the future is polled once more, and
    /// dropped. Annotated calls inside inherit the cancellation and the deadline of `token`.
    ///
    /// In all else as [`within`]: a cancelled token refuses the future without a poll.
    ///
    /// ```
    /// use timeout_runtime::{CancelToken, TimeoutFutureExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let token = CancelToken::new();
    /// let accept = std::future::pending::<()>().with_cancel_token(&token);
    /// token.cancel();
    /// assert!(accept.await.unwrap_err().is_cancelled());
    /// # }
    /// ```
    #[track_caller]
    fn with_cancel_token(self, token: &CancelToken) -> Within<Self> {
        Within::new(options_here().link(token), self)
    }
}

impl<F: Future> TimeoutFutureExt for F {}

pin_project! {
    // The methods of `TimeoutFutureExt` name this type: on Rust 1.85, `impl Future` in a trait
    // would also borrow the token of `with_cancel_token`.
    /// A future with a limit.
    ///
    /// Its output is the future's, or the [`TimeoutError`] that says why there is none.
    #[must_use = "futures do nothing unless polled"]
    pub struct Within<F>
    where
        F: Future,
    {
        #[pin]
        call: ReturnedFutureCall<F::Output, F, AsIs>,
    }
}

impl<F: Future> Within<F> {
    fn new(options: CallOptions, future: F) -> Self {
        Self {
            call: returned_future(options, any_value, |()| future, AsIs),
        }
    }
}

impl<F: Future> Future for Within<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().call.poll(context)
    }
}

impl<F: Future> fmt::Debug for Within<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within").finish_non_exhaustive()
    }
}

/// The result as it is, without a conversion of the error.
struct AsIs;

impl<R> IntoReturn<R> for AsIs {
    type Output = Result<R, TimeoutError>;

    fn into_return(self, ending: Result<R, TimeoutError>) -> Self::Output {
        ending
    }
}

fn any_value<R>(_: &R) -> Returned<'_> {
    Returned::Value
}

/// The policy of each place in the source that has made a call. Places are finite, so the policies
/// are leaked: a name lives as long as the program.
static POLICIES: LazyLock<Mutex<HashMap<Location<'static>, &'static Policy>>> =
    LazyLock::new(Mutex::default);

#[track_caller]
fn options_here() -> CallOptions {
    let place = *Location::caller();
    let policy = *lock(&*POLICIES).entry(place).or_insert_with(|| {
        let name = Box::leak(place.to_string().into_boxed_str());
        Box::leak(Box::new(Policy::new(name)))
    });
    CallOptions::new(PolicyRef::Static(policy))
}
