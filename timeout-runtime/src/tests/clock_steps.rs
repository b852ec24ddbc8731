//! Tests with a clock that steps back or forward, as monotonic clocks do on faulty machines.
//!
//! All threads share the clock, so each test runs in its own process.

use std::future::{Future, pending};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::thread;
use std::time::{Duration, Instant};

use crate::threads::parking;
use crate::time::{Clock, Tick};
use crate::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, EventKind, Outcome, Timeout,
    TimeoutError,
};

use crate::time::tick::{nanos, steps};
use crate::token::node::TIMER;

fn forward(by: Duration) {
    steps::step_by(signed_nanos(by));
    // After a jump of the clock, an operating system wakes all threads whose wait is over.
    TIMER.look_again();
}

fn back(by: Duration) {
    steps::step_by(-signed_nanos(by));
}

fn signed_nanos(by: Duration) -> i64 {
    i64::try_from(nanos(by)).expect("a step is shorter than 292 years")
}

const SECONDS: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any test takes, and shorter than the step forward.
const LIMIT: Duration = Duration::from_secs(600);

fn alone(test: &str, run: impl FnOnce()) {
    const ALONE: &str = "TIMEOUT_TEST_ALONE";

    if std::env::var_os(ALONE).is_some() {
        return run();
    }
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    SyncWorker,
    SyncInline,
    AsyncInline,
    AsyncWorker,
    #[cfg(feature = "tokio")]
    AsyncTask,
}

const EVERY_WAY: &[Way] = &[
    Way::SyncWorker,
    Way::SyncInline,
    Way::AsyncInline,
    Way::AsyncWorker,
    #[cfg(feature = "tokio")]
    Way::AsyncTask,
];

type OpResult = Result<u32, TimeoutError>;
type Events = Arc<Mutex<Vec<(EventKind<'static>, Duration)>>>;

impl Way {
    fn run(
        self,
        timeout: &Timeout,
        op: impl FnOnce(CancelToken) -> OpResult + Send + 'static,
    ) -> Outcome<u32, TimeoutError> {
        match self {
            Self::SyncWorker => timeout.outcome(op),
            Self::SyncInline => timeout.inline().outcome(op),
            Self::AsyncInline => {
                parking::block_on(timeout.outcome_async(|token| async { op(token) }))
            }
            Self::AsyncWorker => parking::block_on(
                timeout
                    .on_worker()
                    .outcome_async(|token| async { op(token) }),
            ),
            #[cfg(feature = "tokio")]
            Self::AsyncTask => tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(timeout.as_task().outcome_async(|token| async { op(token) })),
        }
    }

    /// Asserts the outcome of a success after the deadline, and returns its events.
    ///
    /// The success is late, unless a poll in place returned it.
    fn check_late(
        self,
        outcome: &Outcome<u32, TimeoutError>,
        events: &Events,
    ) -> Vec<(EventKind<'static>, Duration)> {
        let (status, expected): (_, &[EventKind<'static>]) = match self {
            Self::AsyncInline => (CallStatus::Ok, &[EventKind::Succeeded]),
            _ => (
                CallStatus::TimedOut,
                &[EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            ),
        };
        assert_eq!(outcome.status(), status, "{self:?}");
        let events = wait_for(events, expected.len());
        assert_eq!(kinds(events.clone()), expected, "{self:?}");
        events
    }
}

/// Returns a policy, and a record of the events of its calls.
fn recorded(limit: Duration) -> (Timeout, Events) {
    let events = Events::default();
    let sink = Arc::clone(&events);
    let timeout = Timeout::new("steps", limit).unwrap();
    let timeout = timeout.with_listener(move |event| {
        let event = event.clone().into_owned();
        sink.lock().unwrap().push((event.kind, event.elapsed));
    });
    (timeout, events)
}

fn wait_for(events: &Events, count: usize) -> Vec<(EventKind<'static>, Duration)> {
    let start = Instant::now();
    while events.lock().unwrap().len() < count {
        assert!(start.elapsed() < Duration::from_secs(20), "{events:?}");
        thread::sleep(Duration::from_millis(1));
    }
    events.lock().unwrap().clone()
}

fn kinds(events: Vec<(EventKind<'static>, Duration)>) -> Vec<EventKind<'static>> {
    events.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn a_step_back_does_not_overflow_elapsed_times() {
    alone("a_step_back_does_not_overflow_elapsed_times", || {
        for &way in EVERY_WAY {
            let (timeout, events) = recorded(LIMIT);
            let outcome = way.run(&timeout, |token| {
                back(SECONDS);
                let left = token.deadline().remaining().unwrap();
                assert!(left > LIMIT && left <= LIMIT + SECONDS, "{left:?}");
                token.check()?;
                Ok(7)
            });
            assert!(
                matches!(outcome, Outcome::Success(7)),
                "{way:?}: {outcome:?}"
            );
            let events = wait_for(&events, 1);
            assert_eq!(events, [(EventKind::Succeeded, Duration::ZERO)], "{way:?}");
        }
    });
}

#[test]
fn a_call_ends_when_the_clock_reaches_its_deadline_after_a_step_back() {
    alone(
        "a_call_ends_when_the_clock_reaches_its_deadline_after_a_step_back",
        || {
            for &way in EVERY_WAY {
                let (timeout, events) = recorded(LIMIT);
                let outcome = way.run(&timeout, |token| {
                    back(SECONDS);
                    assert!(!token.is_cancelled());
                    // A parked thread waits on the system clock, so this test waits for no thread.
                    forward(SECONDS + LIMIT);
                    Ok(7)
                });
                let events = way.check_late(&outcome, &events);
                for (_, elapsed) in events {
                    assert!(
                        (LIMIT..LIMIT + HOUR).contains(&elapsed),
                        "{way:?}: {elapsed:?}"
                    );
                }
            }
        },
    );
}

#[test]
fn a_jump_over_the_deadline_causes_one_timeout() {
    alone("a_jump_over_the_deadline_causes_one_timeout", || {
        for &way in EVERY_WAY {
            let (timeout, events) = recorded(LIMIT);
            let outcome = way.run(&timeout, |token| {
                forward(HOUR);
                assert_eq!(token.remaining(), Some(Duration::ZERO));
                Ok(7)
            });
            for (_, elapsed) in way.check_late(&outcome, &events) {
                assert!(elapsed >= HOUR, "{way:?}: {elapsed:?}");
            }
            // Calls that start after the jump have their whole limit.
            let next = way.run(&timeout, |token| {
                assert!(token.remaining() > Some(LIMIT / 2));
                Ok(7)
            });
            assert_eq!(next.status(), CallStatus::Ok, "{way:?}: {next:?}");
        }
    });
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Call = Pin<Box<dyn Future<Output = Outcome<u32, TimeoutError>>>>;

/// Guards against alarms that expire again and again after the clock has jumped past them.
#[test]
fn a_jump_over_many_deadlines_wakes_each_call_once() {
    const CALLS: usize = 100;

    alone("a_jump_over_many_deadlines_wakes_each_call_once", || {
        let (timeout, events) = recorded(LIMIT);
        let mut calls: Vec<(Call, Arc<Wakes>)> = (0..CALLS)
            .map(|_| {
                let call: Call = Box::pin(timeout.outcome_async(|_| pending::<OpResult>()));
                (call, Arc::default())
            })
            .collect();
        for (call, wakes) in &mut calls {
            let waker = Arc::clone(wakes).into();
            assert!(
                call.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        forward(HOUR);
        for (call, wakes) in calls {
            let start = Instant::now();
            while wakes.0.load(Ordering::SeqCst) == 0 {
                assert!(
                    start.elapsed() < Duration::from_secs(20),
                    "the alarm never expired"
                );
                thread::yield_now();
            }
            let outcome = parking::block_on(call);
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
            assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        }
        let kinds = kinds(wait_for(&events, CALLS));
        assert_eq!(kinds, vec![EventKind::TimedOut; CALLS]);
    });
}

#[test]
fn a_deadline_an_hour_ago_has_no_time_remaining() {
    alone("a_deadline_an_hour_ago_has_no_time_remaining", || {
        for &way in EVERY_WAY {
            let old = Deadline::on(Clock::Real, Tick::now());
            forward(HOUR);
            assert!(old.has_passed());
            assert_eq!(old.remaining(), Some(Duration::ZERO));
            assert!(!format!("{old:?}").is_empty());
            let (timeout, events) = recorded(LIMIT);
            let ran = Arc::new(AtomicBool::new(false));
            let runs = Arc::clone(&ran);
            let context = CallContext::detached().with_deadline(old);
            let outcome = context.run(|| {
                let token = CancelToken::current();
                assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
                assert_eq!(token.remaining(), Some(Duration::ZERO));
                assert!(token.sleep(Duration::MAX).is_err());
                way.run(&timeout, move |_| {
                    runs.store(true, Ordering::SeqCst);
                    Ok(7)
                })
            });
            assert!(
                matches!(outcome, Outcome::NotStarted(_)),
                "{way:?}: {outcome:?}"
            );
            assert!(!ran.load(Ordering::SeqCst), "{way:?}");
            let events = wait_for(&events, 1);
            assert!(matches!(events[0].0, EventKind::NotStarted(_)), "{way:?}");
            assert!(events[0].1 < LIMIT, "{way:?}: {:?}", events[0].1);
        }
    });
}
