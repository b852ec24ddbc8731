//! [`CallTasks`]: a set of tasks and blocking functions that users create inside a call. They
//! inherit its deadline and its token, and are cancelled when the set is dropped.

use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::{JoinError, JoinSet};

use crate::context::{CallContext, Scope};
use crate::token::CancelToken;
use crate::unwind::{self, Payload};

use super::propagated::Propagated;

/// The tasks and blocking functions that work for one call: a [`JoinSet`] that inherits the call's
/// deadline and token.
///
/// - **They inherit the call.** Annotated calls in them are nested calls, and
///   [`CancelToken::current`] returns a token below that of the call. State that
///   [`add_propagator`](crate::add_propagator) knows is passed on, too.
/// - **They end with the call.** Their token is cancelled with that of the call, for example at the
///   deadline, and when the `CallTasks` is dropped.
///
/// Dropping a `CallTasks` does not wait. It also aborts the tasks: each one is dropped at its
/// current await. A blocking function cannot be aborted, so it runs until it checks its token.
/// [`shutdown`](Self::shutdown) cancels them and waits until all have ended.
///
/// An async call that runs inline drops its operation at the deadline, and thus the `CallTasks` in
/// it. With `grace` or with `run = "task"`, the operation can wait for its tasks then.
///
/// Outside a call, there is no deadline, and only dropping cancels.
///
/// # Examples
///
/// ```
/// use timeout_runtime::{CallTasks, TimeoutError, timeout};
///
/// #[timeout(name = "shard", secs = 60)]
/// async fn shard(number: u32) -> Result<u32, TimeoutError> {
///     Ok(number)
/// }
///
/// fn index() -> Result<u32, TimeoutError> {
///     timeout_runtime::check()?;
///     Ok(10)
/// }
///
/// #[timeout(name = "search", secs = 5)]
/// async fn search() -> Result<u32, TimeoutError> {
///     let mut tasks = CallTasks::new();
///     for number in 1..=3 {
///         tasks.spawn(shard(number));
///     }
///     tasks.spawn_blocking(index);
///
///     let mut sum = 0;
///     while let Some(found) = tasks.join_next().await {
///         sum += found?; // an error cancels the others
///     }
///     Ok(sum)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), TimeoutError> {
/// assert_eq!(search().await?, 16);
/// # Ok(())
/// # }
/// ```
pub struct CallTasks<T> {
    context: CallContext,
    token: CancelToken,
    tasks: JoinSet<T>,
}

impl<T: Send + 'static> CallTasks<T> {
    /// Creates an empty set for the tasks of the current call.
    ///
    /// ```
    /// use timeout_runtime::CallTasks;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut tasks = CallTasks::<u32>::new();
    /// assert_eq!(tasks.join_next().await, None);
    /// # }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        let token = CancelToken::new();
        Self {
            context: CallContext::current().with_token(&token),
            token,
            tasks: JoinSet::new(),
        }
    }

    /// Spawns a task on the current Tokio runtime.
    ///
    /// ```
    /// use timeout_runtime::{CallTasks, Deadline, TimeoutError, timeout};
    ///
    /// #[timeout(name = "report", secs = 5)]
    /// async fn report() -> Result<bool, TimeoutError> {
    ///     let mut tasks = CallTasks::new();
    ///     tasks.spawn(async { Deadline::current().remaining().is_some() });
    ///     Ok(tasks.join_next().await == Some(true))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), TimeoutError> {
    /// assert!(report().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime.
    pub fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) {
        self.tasks.spawn(Task {
            propagated: Propagated::to_task(),
            future: Some(self.context.enclose(future)),
        });
    }

    /// Runs a blocking function on a thread that the current Tokio runtime has for such functions.
    ///
    /// ```
    /// use timeout_runtime::{CallTasks, TimeoutError, check, timeout};
    ///
    /// fn sum(rows: &[u64]) -> Result<u64, TimeoutError> {
    ///     let mut sum = 0;
    ///     for row in rows {
    ///         check()?; // the token of the report
    ///         sum += row;
    ///     }
    ///     Ok(sum)
    /// }
    ///
    /// #[timeout(name = "report", secs = 5)]
    /// async fn report() -> Result<u64, TimeoutError> {
    ///     let mut tasks = CallTasks::new();
    ///     tasks.spawn_blocking(|| sum(&[1, 2, 3]));
    ///     tasks.join_next().await.unwrap_or(Ok(0))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), TimeoutError> {
    /// assert_eq!(report().await?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime.
    pub fn spawn_blocking(&mut self, f: impl FnOnce() -> T + Send + 'static) {
        let context = self.context.clone();
        let mut propagated = Propagated::to_task();
        self.tasks.spawn_blocking(move || {
            let mut f = Some(f);
            let mut value = None;
            let panic = propagated.inside(&mut || value = f.take().map(|f| context.run(f)));
            value_or_panic(value, panic).unwrap_or_else(|| unreachable!("it runs once"))
        });
    }

    /// Waits until one of the tasks or functions has ended, and returns its value. Returns `None`
    /// if there is none.
    ///
    /// ```
    /// use timeout_runtime::CallTasks;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut tasks = CallTasks::new();
    /// for number in 1..=3 {
    ///     tasks.spawn(async move { number });
    /// }
    /// let mut sum = 0;
    /// while let Some(number) = tasks.join_next().await {
    ///     sum += number;
    /// }
    /// assert_eq!(sum, 6);
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a dropped future removes no value.
    ///
    /// # Panics
    ///
    /// Resumes the panic of a task or function. Panics if the runtime of a task was shut down.
    pub async fn join_next(&mut self) -> Option<T> {
        let ended = self.tasks.join_next().await?;
        match ended.map_err(JoinError::try_into_panic) {
            Ok(value) => Some(value),
            Err(Ok(panic)) => resume_unwind(panic),
            Err(Err(error)) => panic!("the runtime was shut down: {error}"),
        }
    }

    /// Cancels all tasks and functions, and waits until they have ended. Drops their values.
    ///
    /// This also waits for a task or function that never checks its token. The deadline of the call
    /// bounds the wait. Another task that is spawned afterwards starts cancelled.
    ///
    /// ```
    /// use timeout_runtime::{CallTasks, CancelToken};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut tasks = CallTasks::new();
    /// tasks.spawn(async { CancelToken::current().cancelled().await });
    /// tasks.shutdown().await;
    /// assert_eq!(tasks.join_next().await, None);
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future stops the wait. The tasks stay cancelled, and a second call
    /// waits for them again.
    ///
    /// # Panics
    ///
    /// As [`join_next`](Self::join_next).
    pub async fn shutdown(&mut self) {
        self.token.cancel();
        while self.join_next().await.is_some() {}
    }
}

/// Returns the value, or resumes the panic.
fn value_or_panic<T>(value: Option<T>, panic: Option<Payload>) -> Option<T> {
    match panic {
        None => value,
        Some(panic) => {
            // Dropped before the panic unwinds, because its destructor may panic, too.
            unwind::drop_catching(value);
            resume_unwind(panic)
        }
    }
}

impl<T: Send + 'static> Default for CallTasks<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for CallTasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallTasks")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

/// Cancels first: the set aborts the tasks when it is dropped.
impl<T> Drop for CallTasks<T> {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

pin_project! {
    /// The future of a task. It is polled and dropped in the context of the call, and with the
    /// propagated state.
    struct Task<F> {
        propagated: Propagated,
        // `None` once it has ended.
        #[pin]
        future: Option<Scope<F>>,
    }

    impl<F> PinnedDrop for Task<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let panic = this.propagated.inside(&mut || this.future.set(None));
            unwind::drop_catching(panic);
        }
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let mut value = None;
        let panic = this.propagated.inside(&mut || {
            if let Some(future) = this.future.as_mut().as_pin_mut() {
                if let Poll::Ready(ready) = future.poll(context) {
                    value = Some(ready);
                    this.future.set(None);
                }
            }
        });
        value_or_panic(value, panic).map_or(Poll::Pending, Poll::Ready)
    }
}
