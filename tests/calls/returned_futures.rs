//! Functions that return a future: built at the call, and limited from the first poll on.

use crate::support;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use support::{Drops, Gate, Tracked, block_on, in_runtime, poll_once, record};
use timeout_runtime::{
    CallStatus, CancelToken, Cause, Deadline, EventKind, Failure, TimeoutError, timeout,
};

type CallResult = Result<u32, TimeoutError>;

const LIMIT: Duration = Duration::from_millis(50);

/// A limit that does not pass during a test.
fn limit(hangs: bool) -> Duration {
    if hangs { LIMIT } else { support::SOON }
}

#[timeout(name = "returned_futures::plain", limit = limit(hangs))]
fn plain(id: u32, hangs: bool, _kept: Tracked) -> impl Future<Output = CallResult> {
    let doubled = id * 2;
    async move {
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(doubled)
    }
}

#[timeout(name = "returned_futures::boxed", limit = limit(hangs))]
fn boxed(
    id: &u32,
    hangs: bool,
    kept: Tracked,
) -> Pin<Box<dyn Future<Output = CallResult> + Send + '_>> {
    if *id == 0 {
        return Box::pin(async { Ok(0) });
    }
    Box::pin(async move {
        if hangs {
            std::future::pending::<()>().await;
        }
        drop(kept);
        Ok(id * 2)
    })
}

#[test]
fn the_result_of_the_future_is_the_result_of_the_call() {
    let drops = Drops::default();
    let recorder = record("returned_futures::plain");
    assert_eq!(block_on(plain(21, false, drops.value())).unwrap(), 42);
    assert_eq!(recorder.kinds(), [EventKind::Succeeded]);
    assert_eq!(block_on(boxed(&21, false, drops.value())).unwrap(), 42);
    assert_eq!(block_on(boxed(&0, true, drops.value())).unwrap(), 0);
    assert_eq!(drops.count(), 3);
}

#[test]
fn a_future_that_hangs_is_dropped_at_the_limit() {
    let drops = Drops::default();
    let recorder = record("returned_futures::plain");
    let start = Instant::now();
    for error in [
        block_on(plain(1, true, drops.value())).unwrap_err(),
        block_on(boxed(&1, true, drops.value())).unwrap_err(),
    ] {
        assert!(error.is_timed_out(), "{error:?}");
        assert_ne!(error.status(), CallStatus::NotStarted);
        assert_eq!(error.limit(), Some(LIMIT));
    }
    assert!(start.elapsed() >= 2 * LIMIT);
    assert_eq!(drops.count(), 2);
    assert_eq!(recorder.kinds()[0], EventKind::TimedOut);
}

static EVALUATED: AtomicU64 = AtomicU64::new(0);

#[timeout(name = "returned_futures::eager", ms = { EVALUATED.fetch_add(1, Ordering::Relaxed); 500 })]
fn eager(made: &Gate) -> impl Future<Output = CallResult> + use<> {
    made.open();
    async { Ok(7) }
}

#[test]
fn the_eager_part_runs_at_the_call_and_the_limit_starts_at_the_first_poll() {
    let made = Gate::new();
    let call = eager(&made);
    assert!(made.is_open());
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 1);
    thread::sleep(Duration::from_millis(600));
    assert_eq!(block_on(call).unwrap(), 7);
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 1);
}

#[timeout(name = "returned_futures::panics", secs = 60)]
fn panics(at_the_call: bool) -> impl Future<Output = CallResult> {
    assert!(!at_the_call, "at the call");
    async { panic!("at the poll") }
}

#[test]
fn a_panic_is_resumed_at_the_call_or_at_the_poll() {
    let recorder = record("returned_futures::panics");
    let text = |payload: Box<dyn std::any::Any + Send>| *payload.downcast::<&str>().unwrap();
    let at_the_call = catch_unwind(|| drop(panics(true))).unwrap_err();
    assert_eq!(text(at_the_call), "at the call");
    assert_eq!(recorder.kinds(), []);
    let call = panics(false);
    let at_the_poll = catch_unwind(AssertUnwindSafe(|| block_on(call))).unwrap_err();
    assert_eq!(text(at_the_poll), "at the poll");
    let panicked = EventKind::Failed(Failure::Panic("at the poll".into()));
    assert_eq!(recorder.kinds(), [panicked]);
}

/// The token from the eager part, and its deadline in the operation.
#[derive(Default)]
struct Seen {
    token: Option<CancelToken>,
    child: Option<CancelToken>,
    deadline: Option<Deadline>,
    current: Option<Deadline>,
}

impl Seen {
    fn cause(&self) -> Option<Cause> {
        self.token.as_ref().unwrap().cause()
    }
}

type See = Arc<Mutex<Seen>>;

macro_rules! watched {
    ($($name:ident)*) => {$(
        #[timeout(name = concat!("returned_futures::", stringify!($name)), ms = ms)]
        fn $name(see: See, ms: u64, hangs: bool) -> impl Future<Output = CallResult> + Send {
            let token = cancel_token.clone();
            {
                let mut seen = see.lock().unwrap();
                assert_eq!(token.deadline(), Deadline::never(), "the call has not started");
                assert_eq!(token.cause(), None);
                seen.child = Some(token.child());
                seen.token = Some(token);
            }
            async move {
                {
                    let mut seen = see.lock().unwrap();
                    seen.deadline = Some(cancel_token.deadline());
                    seen.current = Some(Deadline::current());
                }
                if hangs {
                    cancel_token.cancelled().await;
                    cancel_token.check()?;
                }
                Ok(7)
            }
        }
    )*};
}

// All calls of one name are made in one test, which counts their events.
watched!(watched cancelled dropped dropped_unpolled);

#[test]
fn a_token_taken_at_the_call_is_the_token_of_the_operation() {
    let see = See::default();
    let error = block_on(watched(see.clone(), 50, true)).unwrap_err();
    assert!(error.is_timed_out(), "{error:?}");
    let seen = see.lock().unwrap();
    for deadline in [seen.deadline, seen.current] {
        assert_ne!(deadline, Some(Deadline::never()));
        assert!(deadline.unwrap().has_passed());
    }
    for token in [&seen.token, &seen.child] {
        assert_eq!(token.as_ref().unwrap().cause(), Some(Cause::TimedOut));
    }
    let error = seen.token.as_ref().unwrap().check().unwrap_err();
    assert_eq!(error.name(), "returned_futures::watched");
    assert_eq!(error.limit(), Some(LIMIT));
    assert!(error.elapsed() >= LIMIT, "{error:?}");
}

#[test]
fn the_token_of_a_call_that_ended_in_time_has_no_deadline() {
    let see = See::default();
    assert_eq!(
        block_on(watched(see.clone(), support::short(), false)).unwrap(),
        7
    );
    thread::sleep(2 * support::short_limit());
    let seen = see.lock().unwrap();
    for token in [&seen.token, &seen.child] {
        let token = token.as_ref().unwrap();
        assert_eq!(token.cause(), None);
        assert_eq!(token.deadline(), Deadline::never());
    }
}

#[test]
fn the_token_of_a_blocked_future_is_cancelled_without_a_poll() {
    #[timeout(name = "returned_futures::blocks", ms = 50)]
    fn blocks() -> impl Future<Output = CallResult> {
        async move {
            cancel_token.sleep(Duration::MAX)?;
            Ok(7)
        }
    }
    assert!(block_on(blocks()).unwrap_err().is_timed_out());
}

#[test]
fn cancelling_the_token_ends_the_call() {
    let recorder = record("returned_futures::cancelled");
    let see = See::default();
    let mut call = pin!(cancelled(see.clone(), 60_000, true));
    let woken = Gate::new();
    assert!(poll_once(&mut call, &woken).is_pending());
    see.lock().unwrap().token.as_ref().unwrap().cancel();
    assert!(woken.is_open());
    let error = block_on(call).unwrap_err();
    assert_eq!(error.status(), CallStatus::UpstreamCancelled);
    assert_eq!(recorder.kinds()[0], EventKind::Cancelled);
}

#[test]
fn a_call_that_is_cancelled_before_its_first_poll_does_not_start() {
    let see = See::default();
    let call = watched(see.clone(), 60_000, false);
    see.lock().unwrap().token.as_ref().unwrap().cancel();
    let error = block_on(call).unwrap_err();
    assert_eq!(error.status(), CallStatus::NotStarted);
    assert!(error.is_cancelled());
    assert_eq!(see.lock().unwrap().deadline, None, "the future was polled");
}

#[test]
fn a_refused_call_cancels_its_token() {
    let see = See::default();
    let error = block_on(watched(see.clone(), 0, false)).unwrap_err();
    assert_eq!(error.status(), CallStatus::NotStarted);
    let seen = see.lock().unwrap();
    assert_eq!(seen.deadline, None, "the future was polled");
    assert_eq!(seen.cause(), Some(Cause::TimedOut));
}

#[test]
fn a_dropped_future_cancels_its_token() {
    let see = See::default();
    let recorder = record("returned_futures::dropped");
    let mut call = Box::pin(dropped(see.clone(), 60_000, true));
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    drop(call);
    assert_eq!(see.lock().unwrap().cause(), Some(Cause::Cancelled));
    assert_eq!(recorder.kinds(), [EventKind::Dropped]);

    let see = See::default();
    let recorder = record("returned_futures::dropped_unpolled");
    drop(dropped_unpolled(see.clone(), 60_000, true));
    assert_eq!(see.lock().unwrap().cause(), Some(Cause::Cancelled));
    assert_eq!(recorder.kinds(), []);
}

#[timeout(name = "returned_futures::below", secs = 60, upstream = [&stop])]
#[allow(clippy::needless_pass_by_value)] // Only the attribute uses it.
fn below(stop: CancelToken) -> impl Future<Output = CallResult> {
    async move {
        cancel_token.cancelled().await;
        cancel_token.check()?;
        Ok(7)
    }
}

#[test]
fn an_upstream_token_ends_the_call() {
    let stop = CancelToken::new();
    let mut call = pin!(below(stop.clone()));
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    stop.cancel();
    let error = block_on(call).unwrap_err();
    assert_eq!(error.status(), CallStatus::UpstreamCancelled);

    let error = block_on(below(stop)).unwrap_err();
    assert_eq!(error.status(), CallStatus::NotStarted);
}

#[timeout(name = "returned_futures::outer", ms = 50)]
async fn outer() -> CallResult {
    below(CancelToken::new()).await
}

#[test]
fn an_enclosing_call_limits_a_returned_future() {
    assert!(block_on(outer()).unwrap_err().is_timed_out());
}

#[timeout(name = "returned_futures::forwards", limit = limit)]
fn forwards(
    cancel_token: &CancelToken,
    limit: Duration,
) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
    let token = cancel_token.clone();
    Box::pin(async move {
        token.cancelled().await;
        Err(token.check().unwrap_err())
    })
}

#[test]
fn a_token_in_an_argument_stops_a_returned_future() {
    let stop = CancelToken::new();
    assert!(block_on(forwards(&stop, LIMIT)).unwrap_err().is_timed_out());
    assert!(!stop.is_cancelled());
    let mut call = forwards(&stop, support::SOON);
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    stop.cancel();
    assert!(block_on(call).unwrap_err().is_cancelled());
}

thread_local! {
    static DEADLINE_AT_DROP: Cell<Option<Deadline>> = const { Cell::new(None) };
}

struct ReadsDeadline;

impl Drop for ReadsDeadline {
    fn drop(&mut self) {
        DEADLINE_AT_DROP.set(Some(Deadline::current()));
    }
}

#[timeout(name = "returned_futures::drops_inside", ms = 50)]
fn drops_inside() -> impl Future<Output = CallResult> {
    let reads = ReadsDeadline;
    async move {
        std::future::pending::<()>().await;
        drop(reads);
        Ok(7)
    }
}

/// The frame of a finished call used to stay installed while its future was alive.
#[test]
fn the_operation_is_dropped_inside_its_call() {
    let mut finished = pin!(drops_inside());
    let woken = Gate::new();
    assert!(poll_once(&mut finished, &woken).is_pending());
    thread::sleep(LIMIT);
    let Poll::Ready(outcome) = poll_once(&mut finished, &woken) else {
        panic!("the limit has passed");
    };
    assert!(outcome.unwrap_err().is_timed_out());
    assert_ne!(DEADLINE_AT_DROP.take().unwrap(), Deadline::never());
    assert_eq!(Deadline::current(), Deadline::never());

    let mut left = Box::pin(drops_inside());
    assert!(poll_once(&mut left, &woken).is_pending());
    drop(left);
    assert_ne!(DEADLINE_AT_DROP.take().unwrap(), Deadline::never());
    assert_eq!(Deadline::current(), Deadline::never());

    drop(drops_inside());
    assert_eq!(DEADLINE_AT_DROP.take().unwrap(), Deadline::never());
}

#[timeout(name = "returned_futures::counted", ms = 50, grace = "10s", fallback = |_| 99)]
fn counted(rows: Vec<u8>, hangs: bool) -> impl Future<Output = usize> + Send {
    async move {
        if hangs {
            cancel_token.cancelled().await;
        }
        rows.len()
    }
}

#[timeout(name = "returned_futures::fallen_back", ms = 50, fallback = |_| 99)]
fn fallen_back() -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(std::future::pending())
}

#[test]
fn fallback_and_grace_hold_for_futures_too() {
    assert_eq!(block_on(counted(vec![1, 2], false)), 2);
    assert_eq!(block_on(counted(vec![1, 2], true)), 2);
    assert_eq!(block_on(fallen_back()), 99);
}

#[tokio::test(start_paused = true)]
async fn paused_time_drives_the_limit() {
    #[timeout(name = "returned_futures::hour", secs = 3600)]
    fn hour(see: See) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        see.lock().unwrap().token = Some(cancel_token);
        Box::pin(std::future::pending())
    }
    let (see, start) = (See::default(), Instant::now());
    assert!(hour(see.clone()).await.unwrap_err().is_timed_out());
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(see.lock().unwrap().cause(), Some(Cause::TimedOut));
}

mod in_async_traits {
    use super::*;

    #[async_trait::async_trait]
    trait Store: Send + Sync {
        async fn get(&self, key: &str, hangs: bool) -> Result<String, TimeoutError>;
        async fn put(&mut self, (key, value): (&str, String)) -> CallResult;
        async fn shared(self: Arc<Self>, hangs: bool) -> CallResult;
        async fn own(self: Box<Self>) -> CallResult;
        async fn open<T: Into<u32> + Send>(rows: T) -> CallResult
        where
            Self: Sized;

        #[timeout(ms = 50)]
        async fn provided(&self) -> CallResult {
            cancel_token.cancelled().await;
            cancel_token.check().map(|()| 0)
        }

        #[timeout(ms = 50, fallback = move |_| other)]
        async fn provided_or(&self, other: u32) -> u32 {
            std::future::pending::<()>().await;
            other + 1
        }
    }

    #[async_trait::async_trait(?Send)]
    trait Local {
        async fn local(&self, hangs: bool) -> CallResult;
    }

    struct Map(u32);

    #[async_trait::async_trait]
    impl Store for Map {
        #[timeout(name = "returned_futures::get", limit = limit(hangs))]
        async fn get(&self, key: &str, hangs: bool) -> Result<String, TimeoutError> {
            if hangs {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Ok(format!("{key}{}", self.0))
        }

        #[tracing::instrument(skip_all)]
        #[timeout(secs = 60)]
        async fn put(&mut self, (key, value): (&str, String)) -> CallResult {
            self.0 += u32::try_from(key.len() + value.len()).unwrap();
            tokio::task::yield_now().await;
            cancel_token.check()?;
            Ok(self.0)
        }

        #[timeout(limit = limit(hangs))]
        #[tracing::instrument(skip_all)]
        async fn shared(self: Arc<Self>, hangs: bool) -> CallResult {
            if hangs {
                cancel_token.cancelled().await;
            }
            cancel_token.check()?;
            Ok(self.0)
        }

        #[timeout(secs = 60)]
        async fn own(self: Box<Self>) -> CallResult {
            Ok(self.0)
        }

        #[timeout(secs = 60)]
        async fn open<T: Into<u32> + Send>(rows: T) -> CallResult {
            Ok(rows.into())
        }
    }

    #[async_trait::async_trait(?Send)]
    impl Local for Map {
        #[timeout(limit = limit(hangs))]
        async fn local(&self, hangs: bool) -> CallResult {
            let shared = std::rc::Rc::new(self.0);
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(*shared)
        }
    }

    fn sent<F: Future + Send>(future: F) -> F {
        future
    }

    /// The limit used to cover only the building of the future.
    #[test]
    fn the_limit_covers_the_awaited_operation() {
        in_runtime(async {
            let map = Arc::new(Map(7));
            let start = Instant::now();
            let error = sent(map.get("a", true)).await.unwrap_err();
            assert!(error.is_timed_out(), "{error:?}");
            let error = map.provided().await.unwrap_err();
            assert!(error.is_timed_out(), "{error:?}");
            let error = sent(map.clone().shared(true)).await.unwrap_err();
            assert!(error.is_timed_out(), "{error:?}");
            let error = map.local(true).await.unwrap_err();
            assert!(error.is_timed_out(), "{error:?}");
            assert!(start.elapsed() >= 4 * LIMIT);
        });
    }

    #[test]
    fn every_receiver_works() {
        in_runtime(async {
            let mut map = Map(7);
            assert_eq!(map.get("a", false).await.unwrap(), "a7");
            assert_eq!(sent(map.put(("a", "b".to_owned()))).await.unwrap(), 9);
            assert_eq!(map.local(false).await.unwrap(), 9);
            assert_eq!(Map::open(3_u8).await.unwrap(), 3);
            let map: Box<dyn Store> = Box::new(map);
            assert_eq!(map.provided_or(1).await, 1);
            assert_eq!(map.own().await.unwrap(), 9);
            let map: Arc<dyn Store> = Arc::new(Map(7));
            assert_eq!(map.shared(false).await.unwrap(), 7);
        });
    }
}
