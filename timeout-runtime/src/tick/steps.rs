//! A clock that steps, as monotonic clocks do on bad machines, and what calls make of it.
//!
//! All threads share the clock, so each test here runs in a process of its own.

use std::future::{Future, pending};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::thread;
use std::time::{Duration, Instant};

use crate::deadline::Clock;
use crate::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, EventKind, Outcome, Timeout,
    TimeoutError,
};
use crate::{parking, timer};

use super::{Tick, nanos};

/// By how much the clock is ahead of the system's, in nanoseconds.
static AHEAD: AtomicI64 = AtomicI64::new(0);

pub(super) fn shift(tick: Tick) -> Tick {
    Tick(tick.0.saturating_add_signed(AHEAD.load(Ordering::SeqCst)))
}

fn signed_nanos(by: Duration) -> i64 {
    i64::try_from(nanos(by)).expect("a step is shorter than 292 years")
}

fn forward(by: Duration) {
    AHEAD.fetch_add(signed_nanos(by), Ordering::SeqCst);
    // As a system does whose clock has jumped: it wakes those whose time has come.
    timer::look_again();
}

fn back(by: Duration) {
    AHEAD.fetch_sub(signed_nanos(by), Ordering::SeqCst);
}

const SECONDS: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any of this takes, and shorter than the step forward.
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
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
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

type Answer = Result<u32, TimeoutError>;
type Told = Arc<Mutex<Vec<(EventKind<'static>, Duration)>>>;

impl Way {
    fn run(
        self,
        timeout: &Timeout,
        op: impl FnOnce(CancelToken) -> Answer + Send + 'static,
    ) -> Outcome<u32, TimeoutError> {
        match self {
            Self::SyncWorker => timeout.outcome(op),
            Self::SyncInline => timeout.outcome_inline(op),
            Self::AsyncInline => {
                parking::block_on(timeout.outcome_async(|token| async { op(token) }))
            }
            Self::AsyncWorker => {
                parking::block_on(timeout.outcome_async_on_worker(|token| async { op(token) }))
            }
            #[cfg(feature = "tokio")]
            Self::AsyncTask => tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(timeout.outcome_task(|token| async { op(token) })),
        }
    }

    /// The events of a success that came after the deadline: it is late, unless a poll in place
    /// returned it.
    fn check_late(
        self,
        outcome: &Outcome<u32, TimeoutError>,
        told: &Told,
    ) -> Vec<(EventKind<'static>, Duration)> {
        let (status, expected): (_, &[EventKind<'static>]) = match self {
            Self::AsyncInline => (CallStatus::Ok, &[EventKind::Succeeded]),
            _ => (
                CallStatus::TimedOut,
                &[EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            ),
        };
        assert_eq!(outcome.status(), status, "{self:?}");
        let told = wait_for(told, expected.len());
        assert_eq!(kinds(told.clone()), expected, "{self:?}");
        told
    }
}

/// A policy, and what is told of its calls.
fn told(limit: Duration) -> (Timeout, Told) {
    let told = Told::default();
    let sink = Arc::clone(&told);
    let timeout = Timeout::new("steps", limit).unwrap();
    let timeout = timeout.with_listener(move |event| {
        let event = event.clone().into_owned();
        sink.lock().unwrap().push((event.kind, event.elapsed));
    });
    (timeout, told)
}

fn wait_for(told: &Told, count: usize) -> Vec<(EventKind<'static>, Duration)> {
    let start = Instant::now();
    while told.lock().unwrap().len() < count {
        assert!(start.elapsed() < Duration::from_secs(20), "{told:?}");
        thread::sleep(Duration::from_millis(1));
    }
    told.lock().unwrap().clone()
}

fn kinds(told: Vec<(EventKind<'static>, Duration)>) -> Vec<EventKind<'static>> {
    told.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn a_step_back_gives_no_time_that_wraps() {
    alone("a_step_back_gives_no_time_that_wraps", || {
        for &way in EVERY_WAY {
            let (timeout, told) = told(LIMIT);
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
            let told = wait_for(&told, 1);
            assert_eq!(told, [(EventKind::Succeeded, Duration::ZERO)], "{way:?}");
        }
    });
}

#[test]
fn a_call_still_ends_when_the_clock_has_come_to_its_deadline_again() {
    alone(
        "a_call_still_ends_when_the_clock_has_come_to_its_deadline_again",
        || {
            for &way in EVERY_WAY {
                let (timeout, told) = told(LIMIT);
                let outcome = way.run(&timeout, |token| {
                    back(SECONDS);
                    assert!(!token.is_cancelled());
                    // Who waits parks by the system's clock: nobody is waited for here.
                    forward(SECONDS + LIMIT);
                    Ok(7)
                });
                let told = way.check_late(&outcome, &told);
                for (_, elapsed) in told {
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
fn a_jump_over_the_deadline_is_one_timeout() {
    alone("a_jump_over_the_deadline_is_one_timeout", || {
        for &way in EVERY_WAY {
            let (timeout, told) = told(LIMIT);
            let outcome = way.run(&timeout, |token| {
                forward(HOUR);
                assert_eq!(token.remaining(), Some(Duration::ZERO));
                Ok(7)
            });
            for (_, elapsed) in way.check_late(&outcome, &told) {
                assert!(elapsed >= HOUR, "{way:?}: {elapsed:?}");
            }
            // Calls that start after it have their whole limit.
            let next = way.run(&timeout, |token| {
                assert!(token.remaining() > Some(LIMIT / 2));
                Ok(7)
            });
            assert!(next.is_success(), "{way:?}: {next:?}");
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

/// Guards against a storm: alarms that ring again and again once the clock has left them behind.
#[test]
fn a_jump_over_many_deadlines_rings_each_alarm_once() {
    const CALLS: usize = 100;

    alone("a_jump_over_many_deadlines_rings_each_alarm_once", || {
        let (timeout, told) = told(LIMIT);
        let mut calls: Vec<(Call, Arc<Wakes>)> = (0..CALLS)
            .map(|_| {
                let call: Call = Box::pin(timeout.outcome_async(|_| pending::<Answer>()));
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
                    "an alarm that never rang"
                );
                thread::yield_now();
            }
            let outcome = parking::block_on(call);
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
            // By its own alarm, and by its token's.
            assert!(wakes.0.load(Ordering::SeqCst) <= 2);
        }
        let told = kinds(wait_for(&told, CALLS));
        assert_eq!(told, vec![EventKind::TimedOut; CALLS]);
    });
}

#[test]
fn of_a_deadline_that_is_an_hour_old_nothing_is_left() {
    alone("of_a_deadline_that_is_an_hour_old_nothing_is_left", || {
        for &way in EVERY_WAY {
            let old = Deadline::on(Clock::Real, Tick::now());
            forward(HOUR);
            assert!(old.has_passed());
            assert_eq!(old.remaining(), Some(Duration::ZERO));
            assert!(!format!("{old:?}").is_empty());
            let (timeout, told) = told(LIMIT);
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
            let told = wait_for(&told, 1);
            assert!(matches!(told[0].0, EventKind::NotStarted(_)), "{way:?}");
            assert!(told[0].1 < LIMIT, "{way:?}: {:?}", told[0].1);
        }
    });
}
