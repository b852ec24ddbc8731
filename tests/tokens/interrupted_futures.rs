//! `interrupt_async_with`: a cancellation stops what a future waits for, and the future gets some
//! time to end.

use crate::{panics, support};
use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use support::{ASYNC, Drops, Gate, SOON, Way, block_on, in_runtime, limit, poll_once, short};
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::Instant;

const LONG: u64 = 60_000;

/// Stops that are lost, except the one with the number `effective`, which ends the future.
struct Stops {
    count: Arc<AtomicUsize>,
    effective: usize,
    ends: Option<oneshot::Sender<u32>>,
}

impl Stops {
    fn of_future(effective: usize) -> (Self, oneshot::Receiver<u32>) {
        let (ends, future) = oneshot::channel();
        let stops = Self {
            count: Arc::default(),
            effective,
            ends: Some(ends),
        };
        (stops, future)
    }

    fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    /// Takes effect when the returned future is polled.
    fn stop(&mut self) -> impl Future<Output = ()> + use<> {
        let is_effective = self.count.fetch_add(1, Ordering::SeqCst) + 1 == self.effective;
        let ends = self.ends.take_if(|_| is_effective);
        async move {
            if let Some(ends) = ends {
                ends.send(7).ok();
            }
        }
    }
}

/// Runs `future` in a runtime whose time is paused. Returns the time that it takes.
fn in_paused_time<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let start = Instant::now();
        (future.await, start.elapsed())
    })
}

/// Cancels `token` when it is polled, and is never ready.
async fn cancels_and_hangs(token: &CancelToken) {
    token.cancel();
    pending::<()>().await;
}

#[test]
fn a_future_without_a_cancellation_returns_its_output_and_is_not_stopped() {
    let token = CancelToken::new();
    let never = || -> std::future::Ready<()> { panic!("a stop was called") };
    let ended = block_on(token.interrupt_async_with(never, SOON, ready(7)));
    assert_eq!(ended, Ok(7));
    // A future that ends in the poll that cancels the token has its whole output.
    let ends = async {
        token.cancel();
        7
    };
    let ended = block_on(token.interrupt_async_with(never, SOON, ends));
    assert_eq!(ended, Ok(7));
}

#[test]
fn with_a_cancelled_token_neither_the_future_nor_a_stop_is_polled() {
    let token = CancelToken::new();
    token.cancel_with("shutdown");
    let never = || -> std::future::Ready<()> { panic!("a stop was called") };
    let future = poll_fn(|_| -> Poll<()> { panic!("the future was polled") });
    let ended = block_on(token.interrupt_async_with(never, SOON, future));
    assert_eq!(ended, token.check());
}

/// A cancel request is lost if no query runs at that moment.
#[test]
fn a_stop_that_is_lost_is_repeated_until_the_future_ends() {
    for effective in [1, 2, 8] {
        let (mut stops, future) = Stops::of_future(effective);
        let count = stops.counter();
        let token = CancelToken::new();
        let ended = block_on(token.interrupt_async_with(|| stops.stop(), SOON, async {
            token.cancel();
            future.await
        }));
        assert!(ended.unwrap_err().is_cancelled());
        assert!(count.load(Ordering::SeqCst) >= effective);
    }
}

#[test]
fn a_stop_that_panics_is_repeated() {
    panics::record_panics();
    for in_its_future in [false, true] {
        let (mut stops, future) = Stops::of_future(3);
        let token = CancelToken::new();
        let stop = || {
            let stopping = stops.stop();
            let panics = stops.count.load(Ordering::SeqCst) < 3;
            assert!(!panics || in_its_future, "wanted: a stop's panic");
            async move {
                assert!(!panics, "wanted: a stop's panic");
                stopping.await;
            }
        };
        let ended = block_on(token.interrupt_async_with(stop, SOON, async {
            token.cancel();
            future.await
        }));
        assert!(ended.unwrap_err().is_cancelled());
    }
}

/// The time passes for a future that hangs, and for a stop that hangs.
#[test]
fn settle_bounds_the_wait_for_the_future_and_for_the_stop() {
    const SETTLE: Duration = Duration::from_secs(1);

    // The pauses grow to 32 ms, and after a second to about 1 s, so that a server that does not
    // stop is not flooded. Tokio's timer rounds up to whole milliseconds.
    for (settle, expected) in [(SETTLE, 30..=40), (10 * SETTLE, 45..=50)] {
        let (token, count) = (CancelToken::new(), AtomicUsize::new(0));
        let lost = || ready(count.fetch_add(1, Ordering::SeqCst));
        let future = cancels_and_hangs(&token);
        let (ended, took) = in_paused_time(token.interrupt_async_with(lost, settle, future));
        assert!(ended.unwrap_err().is_cancelled());
        assert_eq!(took, settle);
        let count = count.load(Ordering::SeqCst);
        assert!(expected.contains(&count), "{count} stops in {settle:?}");
    }

    let token = CancelToken::new();
    let future = cancels_and_hangs(&token);
    let (ended, took) = in_paused_time(token.interrupt_async_with(pending::<()>, SETTLE, future));
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(took, SETTLE);
}

#[test]
fn without_time_to_settle_one_stop_is_polled_once() {
    let (token, polls) = (CancelToken::new(), AtomicUsize::new(0));
    let stop = || {
        poll_fn(|_| {
            polls.fetch_add(1, Ordering::SeqCst);
            Poll::<()>::Pending
        })
    };
    let future = cancels_and_hangs(&token);
    let (ended, took) = in_paused_time(token.interrupt_async_with(stop, Duration::ZERO, future));
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!((polls.into_inner(), took), (1, Duration::ZERO));
}

/// A cancel request that is still under way could reach the next query.
#[test]
fn a_running_stop_is_awaited_after_the_future_has_ended() {
    let (token, has_ended) = (CancelToken::new(), AtomicBool::new(false));
    let (ends, future) = oneshot::channel();
    let mut ends = Some(ends);
    let stop = || {
        let (ends, has_ended) = (ends.take(), &has_ended);
        async move {
            ends.map(|ends| ends.send(7));
            tokio::time::sleep(Duration::from_secs(5)).await;
            has_ended.store(true, Ordering::SeqCst);
        }
    };
    let (ended, took) =
        in_paused_time(
            token.interrupt_async_with(stop, Duration::from_secs(60), async {
                token.cancel();
                future.await
            }),
        );
    assert!(ended.unwrap_err().is_cancelled());
    assert!(has_ended.into_inner());
    assert_eq!(took, Duration::from_secs(5));
}

#[test]
fn dropping_the_future_drops_its_parts_and_calls_no_further_stop() {
    let (token, drops, count) = (CancelToken::new(), Drops::default(), AtomicUsize::new(0));
    {
        let stop = || {
            count.fetch_add(1, Ordering::SeqCst);
            let value = drops.value();
            async move {
                let _value = value;
                pending::<()>().await;
            }
        };
        let value = drops.value();
        let future = async {
            let _value = value;
            cancels_and_hangs(&token).await;
        };
        let mut interrupted = Box::pin(token.interrupt_async_with(stop, SOON, future));
        assert!(poll_once(&mut interrupted, &Gate::new()).is_pending());
        assert_eq!((drops.count(), count.load(Ordering::SeqCst)), (0, 1));
    }
    assert_eq!((drops.count(), count.into_inner()), (2, 1));
}

#[test]
fn a_panic_of_the_future_passes_through() {
    panics::record_panics();
    let token = CancelToken::new();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        block_on(token.interrupt_async_with(pending::<()>, SOON, async {
            token.cancel();
            tokio::task::yield_now().await;
            panic!("wanted: the panic of the future")
        }))
    }));
    assert!(caught.is_err());
}

/// An output that comes after the cancellation may be incomplete.
#[test]
fn the_output_of_a_future_that_was_stopped_is_dropped() {
    let (token, drops) = (CancelToken::new(), Drops::default());
    let (mut stops, future) = Stops::of_future(1);
    let ended = block_on(token.interrupt_async_with(|| stops.stop(), SOON, async {
        token.cancel();
        future.await.unwrap();
        drops.value()
    }));
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 1);
}

/// The interruption of an operation, and the number of its stops.
fn interrupted(
    way: Way,
    context: &CallContext,
    ms: u64,
    started: Gate,
) -> (Outcome<u32, timeout_runtime::TimeoutError>, usize) {
    let (mut stops, future) = Stops::of_future(3);
    let count = stops.counter();
    let calls = limit("interrupted_futures::call", ms).with_grace(SOON);
    let call = way.start(&calls, move |token| async move {
        let future = async {
            started.open();
            future.await.unwrap()
        };
        token
            .interrupt_async_with(|| stops.stop(), SOON, future)
            .await
    });
    let outcome = in_runtime(context.scope(call));
    (outcome, count.load(Ordering::SeqCst))
}

#[test]
fn the_deadline_of_a_call_stops_its_future_within_grace() {
    for way in ASYNC {
        let context = CallContext::detached();
        let (outcome, stops) = interrupted(way, &context, short(), Gate::new());
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
        assert!(stops >= 3, "{way:?}: {stops}");
    }
}

#[test]
fn an_upstream_token_stops_the_future_of_a_call() {
    for way in ASYNC {
        let (upstream, started) = (CancelToken::new(), Gate::new());
        let (cancels, under_way) = (upstream.clone(), started.clone());
        let canceller = std::thread::spawn(move || {
            under_way.wait();
            cancels.cancel();
        });
        let context = CallContext::detached().with_token(&upstream);
        let (outcome, stops) = interrupted(way, &context, LONG, started);
        canceller.join().unwrap();
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
        assert!(stops >= 3, "{way:?}: {stops}");
    }
}

#[test]
fn the_returned_future_is_send_if_its_parts_are() {
    fn assert_send(_: impl Send) {}

    let token = CancelToken::new();
    assert_send(token.interrupt_async_with(|| ready(()), SOON, ready(7)));
    let interrupted = pin!(token.interrupt_async_with(|| ready(()), SOON, ready(7)));
    assert_eq!(block_on(interrupted), Ok(7));
}
