//! Interrupts futures whose drivers need an explicit request to stop, such as a query.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::outcome::TimeoutError;
use crate::time::{Clock, Tick};
use crate::token::{CallerAlarm, CancelToken};
use crate::unwind;

use super::Pauses;

impl CancelToken {
    /// Runs `future`, and calls `stop` when the token is cancelled meanwhile. Then gives `future`
    /// the time `settle` to end.
    ///
    /// For clients whose server continues without them: dropping the future of a database query can
    /// leave the query running. `stop` is called at least once, and is repeated with the pauses of
    /// [`interrupt_with`](Self::interrupt_with) until `future` has ended, or until `settle` has
    /// passed. A running `stop` is awaited, so that it does not reach the next query, but not
    /// longer than `settle` either. A panic in `stop` is caught.
    ///
    /// An inline async function is dropped at its deadline, or when its caller drops the call. A
    /// `grace` of at least `settle` gives it the time that this method needs, but not past an
    /// inherited deadline. With `run = "task"` the caller leaves in each of these cases, and this
    /// method continues.
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops `future` and a running `stop`, and calls no further one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use timeout_runtime::CancelToken;
    /// use tokio::sync::oneshot;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (stop, stopped) = oneshot::channel();
    /// let token = CancelToken::new();
    /// token.cancel_with("shutdown");
    ///
    /// let mut stop = Some(stop);
    /// let stop = || {
    ///     let stop = stop.take();
    ///     async move { stop.map(|stop| stop.send(())) }
    /// };
    /// let ended = token.interrupt_async_with(stop, Duration::from_secs(1), stopped).await;
    /// assert!(ended.unwrap_err().is_cancelled());
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of [`check`](Self::check) if the token is cancelled before `future` starts,
    /// which is then never polled, or if `stop` was called. In that case the output is dropped: it
    /// may be incomplete.
    pub async fn interrupt_async_with<F, S>(
        &self,
        mut stop: impl FnMut() -> S,
        settle: Duration,
        future: F,
    ) -> Result<F::Output, TimeoutError>
    where
        F: Future,
        S: Future,
    {
        self.check()?;
        let mut future = pin!(future);
        if let Some(output) = self.run_until_cancelled(future.as_mut()).await {
            return Ok(output);
        }
        let clock = Clock::of_task().resolved();
        let mut settling = Settling {
            future,
            has_ended: false,
            clock,
            end: clock.now().plus(settle),
            alarm: CallerAlarm::default(),
        };
        let mut pauses = Pauses::default();
        loop {
            // A panic of `stop` counts as its end.
            if let Ok(stopping) = unwind::catch(&mut stop).map_err(unwind::drop_catching) {
                let mut stopping = pin!(stopping);
                let poll = |context: &mut Context<'_>| {
                    let polled = unwind::catch(|| stopping.as_mut().poll(context).is_ready());
                    polled.map_err(unwind::drop_catching).unwrap_or(true)
                };
                settling.run_beside(poll).await;
            }
            settling.pause(pauses.next()).await;
            if settling.is_over() {
                break;
            }
        }
        match self.0.error() {
            Some(error) => Err(error),
            None => unreachable!("the token is cancelled"),
        }
    }
}

/// A future after the cancellation, which gets some time to end.
struct Settling<F> {
    future: F,
    has_ended: bool,
    clock: Clock,
    end: Tick,
    alarm: CallerAlarm,
}

impl<F: Future + Unpin> Settling<F> {
    fn is_over(&self) -> bool {
        self.has_ended || self.clock.has_reached(self.end)
    }

    /// Polls the future too until `other` has ended, and no longer than until the end.
    async fn run_beside(&mut self, mut other: impl FnMut(&mut Context<'_>) -> bool) {
        poll_fn(|context| {
            self.poll_future(context);
            if other(context) {
                return Poll::Ready(());
            }
            self.poll_time(self.end, context)
        })
        .await;
    }

    /// Polls the future until it has ended, for at most `pause`.
    async fn pause(&mut self, pause: Duration) {
        let until = self.clock.now().plus(pause).min(self.end);
        poll_fn(|context| {
            self.poll_future(context);
            if self.has_ended {
                return Poll::Ready(());
            }
            self.poll_time(until, context)
        })
        .await;
    }

    fn poll_future(&mut self, context: &mut Context<'_>) {
        if !self.has_ended {
            self.has_ended = Pin::new(&mut self.future).poll(context).is_ready();
        }
    }

    fn poll_time(&mut self, until: Tick, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.has_reached(until) {
            return Poll::Ready(());
        }
        self.alarm.set(self.clock, until, context);
        Poll::Pending
    }
}
