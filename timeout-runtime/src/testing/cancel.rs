//! [`cancel_at_every_check`]: runs a test again and again, and cancels its call one point later
//! each time. A point is a check of a token, a wait, or an `.await` that is pending.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{Location, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::context::frame;
use crate::probe::{Probe, ProbeHandle};
use crate::unwind;

/// A place where an operation can be cancelled: where it checks its token, waits, or is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CancelPoint {
    /// Counts the points of one run, from 1.
    pub number: usize,
    /// The name of the call that is cancelled there: the outermost one inside the test.
    pub call: &'static str,
    /// Where the operation checks its token or waits. `None` where its future is pending.
    pub place: Option<&'static Location<'static>>,
}

impl fmt::Display for CancelPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            call,
            place,
        } = self;
        match place {
            Some(place) => write!(f, "point {number}: `{call}` checks its token at {place}"),
            None => write!(f, "point {number}: `{call}` is pending"),
        }
    }
}

/// Runs `test` again and again, and cancels the call in it at its first, second, third … point
/// until a run ends without a cancellation. Returns the points of that last run.
///
/// A point is each check of a token and each wait for one: [`check`](crate::check), the methods of
/// [`CancelToken`](crate::CancelToken) that read it or block on it, and `.await` where the
/// operation is pending. Points of nested calls count too. At its point the outermost call of
/// `test` is cancelled, and with it all nested ones. So everything that `test` creates, calls and
/// asserts must begin anew in each run:
///
/// ```
/// use std::sync::Mutex;
/// use timeout_runtime::testing::cancel_at_every_check;
/// use timeout_runtime::{TimeoutError, check, timeout};
///
/// #[timeout(name = "transfer", secs = 5, run = "inline")]
/// fn transfer(accounts: &Mutex<[u32; 2]>, amount: u32) -> Result<(), TimeoutError> {
///     check()?;
///     let mut accounts = accounts.lock().unwrap();
///     accounts[0] -= amount;
///     // A check here would lose the amount.
///     accounts[1] += amount;
///     check()
/// }
///
/// let points = cancel_at_every_check(|| {
///     let accounts = Mutex::new([10, 0]);
///     let _ = transfer(&accounts, 3);
///     assert_eq!(accounts.into_inner().unwrap().iter().sum::<u32>(), 10);
/// });
/// assert_eq!(points.len(), 2);
/// ```
///
/// An operation on a worker or in a task has ended when its call returns: the caller waits for it
/// after the cancellation, at most until its limit. Run `test` on a
/// [`TestClock`](super::TestClock) if it sleeps or retries.
///
/// # Panics
///
/// If `test` panics, with that panic. The point of that run is printed;
/// [`cancel_at_check`] with its number repeats the run alone.
#[allow(clippy::must_use_candidate)] // Mostly called for its effect.
pub fn cancel_at_every_check<T>(mut test: impl FnMut() -> T) -> Vec<CancelPoint> {
    let mut number = 1;
    loop {
        let run = Run::new(number);
        run.end(unwind::catch(|| run.inside(&mut test)));
        let points = run.points();
        if points.len() < number {
            return points;
        }
        number += 1;
    }
}

/// Runs `test` once, and cancels the call in it at the point with this number: see
/// [`cancel_at_every_check`].
///
/// # Panics
///
/// If `test` panics, with that panic.
///
/// ```
/// use std::time::Duration;
/// use timeout_runtime::testing::cancel_at_check;
/// use timeout_runtime::within_blocking;
///
/// let hour = Duration::from_secs(3600);
/// let stopped = cancel_at_check(2, || {
///     within_blocking(hour, |token| (token.check().is_err(), token.check().is_err()))
/// });
/// // The caller waits for the operation, but its result comes after the cancellation.
/// assert!(stopped.unwrap_err().is_cancelled());
/// ```
pub fn cancel_at_check<T>(number: usize, test: impl FnOnce() -> T) -> T {
    let run = Run::new(number);
    let result = unwind::catch(|| run.inside(test));
    run.end(result)
}

/// As [`cancel_at_every_check`], for async code. Each run is a future that `test` creates.
///
/// # Panics
///
/// As [`cancel_at_every_check`]. [`cancel_at_check_async`] repeats a run alone.
///
/// # Cancel safety
///
/// Dropping the returned future drops the current run.
///
/// ```
/// use timeout_runtime::testing::cancel_at_every_check_async;
/// use timeout_runtime::{TimeoutError, timeout};
/// use tokio::task::yield_now;
///
/// #[timeout(name = "wait", secs = 5)]
/// async fn wait() -> Result<(), TimeoutError> {
///     yield_now().await;
///     yield_now().await;
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let points = cancel_at_every_check_async(async || {
///     let _ = wait().await;
/// });
/// assert_eq!(points.await.len(), 2);
/// # }
/// ```
pub async fn cancel_at_every_check_async<T>(mut test: impl AsyncFnMut() -> T) -> Vec<CancelPoint> {
    let mut number = 1;
    loop {
        let run = Run::new(number);
        run.poll(&mut test).await;
        let points = run.points();
        if points.len() < number {
            return points;
        }
        number += 1;
    }
}

/// As [`cancel_at_check`], for async code.
///
/// # Panics
///
/// If `test` panics, with that panic.
///
/// # Cancel safety
///
/// Dropping the returned future drops the run.
pub async fn cancel_at_check_async<T>(number: usize, test: impl AsyncFnOnce() -> T) -> T {
    Run::new(number).poll(test).await
}

/// One run of a test.
struct Run {
    probe: Arc<Probe>,
    handle: ProbeHandle,
}

impl Run {
    fn new(number: usize) -> Self {
        let around = frame::token().map_or(0, |token| token.0.address().addr());
        let probe = Probe::new(number, around);
        let handle = ProbeHandle::of(&probe);
        Self { probe, handle }
    }

    fn inside<T>(&self, test: impl FnOnce() -> T) -> T {
        let _inside = self.handle.enter();
        test()
    }

    async fn poll<T>(&self, test: impl AsyncFnOnce() -> T) -> T {
        let created = unwind::catch(|| self.inside(|| test()));
        let mut future = pin!(self.end(created));
        poll_fn(|context| {
            let polled = unwind::catch(|| self.inside(|| future.as_mut().poll(context)));
            match self.end(polled) {
                Poll::Ready(output) => Poll::Ready(output),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Prints where the test was cancelled if it has panicked, and resumes the panic.
    fn end<T>(&self, result: Result<T, unwind::Payload>) -> T {
        let panic = match result {
            Ok(value) => return value,
            Err(panic) => panic,
        };
        let points = self.points();
        match points
            .last()
            .filter(|point| point.number == self.probe.target())
        {
            None => eprintln!("the test fails without a cancellation"),
            Some(point) => eprintln!(
                "the test fails if it is cancelled at {point}\n\
                 `cancel_at_check({}, ..)` repeats this run alone",
                point.number
            ),
        }
        resume_unwind(panic)
    }

    fn points(&self) -> Vec<CancelPoint> {
        let points = self.probe.points().into_iter();
        let numbered = (1..).zip(points).map(|(number, point)| CancelPoint {
            number,
            call: point.call,
            place: point.place,
        });
        numbered.collect()
    }
}
