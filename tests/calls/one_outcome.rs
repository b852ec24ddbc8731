//! Every call has one outcome, which one atomic word decides.

use crate::support;
use std::collections::HashMap;
use std::task::Poll;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, TIMED, Way, assert_timed_out, limit, poll_once, record, runtime,
    short, short_limit, until_cancelled, until_past,
};
use timeout_runtime::{
    CallId, CallStatus, EventKind, FromTimeout, Outcome, Returned, TimeoutError,
};

const GRACE: Duration = Duration::from_secs(60);

#[test]
fn every_runner_reports_a_result_in_time_as_a_success() {
    let recorder = record("one_outcome::in_time");
    for way in EVERY_WAY {
        let outcome = way.run(&limit("one_outcome::in_time", 60_000), |_| {
            Ok::<_, TimeoutError>(7)
        });
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
    assert_eq!(recorder.kinds(), vec![EventKind::Succeeded; 5]);
}

#[test]
fn every_runner_times_out_an_operation_that_checks_its_token() {
    for way in EVERY_WAY {
        let outcome = way.run(&limit("one_outcome::stops", short()), |token| {
            until_cancelled(&token)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.elapsed() >= short_limit(), "{way:?}");
    }
}

#[test]
fn an_operation_that_ignores_its_token_times_out_on_another_thread() {
    for way in ABANDONING {
        let gate = Gate::new();
        let held = gate.clone();
        let outcome = way.run(&limit("one_outcome::ignores", short()), move |_| {
            held.wait();
            Ok::<_, TimeoutError>(7)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.elapsed() >= short_limit(), "{way:?}");
        gate.open();
    }
}

/// A success used to count although its operation had blocked its caller past the limit.
#[test]
fn a_late_success_is_abandoned_unless_an_inline_poll_returns_it() {
    for way in TIMED {
        let recorder = record("one_outcome::late");
        let returned = Gate::new();
        let after = way.abandons().then(|| returned.clone());
        let outcome = way.run(&limit("one_outcome::late", short()), move |token| {
            until_past(&token);
            if let Some(after) = after {
                after.wait();
            }
            Ok::<_, TimeoutError>(7)
        });
        assert_timed_out(way, &outcome);
        returned.open();
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
    }
}

#[test]
fn every_runner_accepts_a_success_within_the_grace() {
    let recorder = record("one_outcome::grace");
    for way in EVERY_WAY {
        let timeout = limit("one_outcome::grace", short()).with_grace(GRACE);
        let outcome = way.run(&timeout, |token| {
            until_past(&token);
            Ok::<_, TimeoutError>(7)
        });
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
    for event in recorder.events() {
        assert_eq!(event.kind, EventKind::Succeeded);
        assert!(event.elapsed > short_limit(), "{event}");
    }
}

#[test]
fn a_success_after_the_grace_is_abandoned_unless_an_inline_poll_returns_it() {
    for way in TIMED {
        let recorder = record("one_outcome::after_grace");
        let timeout =
            limit("one_outcome::after_grace", short()).with_grace(Duration::from_millis(20));
        let returned = Gate::new();
        let after = way.abandons().then(|| returned.clone());
        let outcome = way.run(&timeout, move |token| {
            let _ = token.wait_timeout(Duration::MAX);
            std::thread::sleep(Duration::from_millis(25));
            if let Some(after) = after {
                after.wait();
            }
            Ok::<_, TimeoutError>(7)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(
            error.elapsed() >= Duration::from_millis(short() + 20),
            "{way:?}"
        );
        returned.open();
        let events = recorder.wait_for(2);
        assert_eq!(events[1], EventKind::AbandonedWorkerSucceeded, "{way:?}");
    }
}

/// The caller used to check the clock before the published result.
#[test]
fn a_published_result_wins_over_a_passed_deadline() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let recorder = record("one_outcome::tie");
        let (go, published) = (Gate::new(), Gate::new());
        let held = go.clone();
        let mut call = way.start(&limit("one_outcome::tie", 2_000), |token| async move {
            held.wait();
            Ok::<_, TimeoutError>(token)
        });
        assert!(poll_once(&mut call, &published).is_pending());
        go.open();
        published.wait();
        // The caller polls the call long after the deadline.
        std::thread::sleep(Duration::from_millis(2_100));
        let outcome = poll_once(&mut call, &Gate::new());
        assert!(
            matches!(outcome, Poll::Ready(Outcome::Success(_))),
            "{way:?}: {outcome:?}"
        );
        let event = &recorder.events()[0];
        assert_eq!(event.kind, EventKind::Succeeded, "{way:?}");
        assert!(event.elapsed <= Duration::from_secs(2), "{way:?}: {event}");
    }
}

/// A result whose `returned` opens the first gate and waits for the second one.
/// The second gate stands between the operation's clock reading and its publication.
enum Held {
    Result(Gate, Gate),
    Ended(TimeoutError),
}

impl FromTimeout for Held {
    fn from_timeout(error: TimeoutError) -> Self {
        Self::Ended(error)
    }

    fn returned(&self) -> Returned<'_> {
        match self {
            Self::Result(read, publish) => {
                read.open();
                publish.wait();
                Returned::Value
            }
            Self::Ended(error) => Returned::Error(error),
        }
    }
}

annotated! {
    mod held, [name = "one_outcome::held", secs = 1], (read: Gate, publish: Gate) -> Held {
        Held::Result(read, publish)
    }
}

#[test]
fn a_result_in_time_that_is_published_too_late_is_abandoned() {
    for way in ABANDONING {
        let recorder = record("one_outcome::held");
        let (read, publish) = (Gate::new(), Gate::new());
        match held::call(way, read.clone(), publish.clone()) {
            Held::Ended(error) => assert!(error.is_timed_out(), "{way:?}"),
            Held::Result(..) => panic!("{way:?}: a result was published while the gate was shut"),
        }
        read.wait();
        publish.open();
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
        let event = &recorder.events()[1];
        assert!(event.elapsed <= Duration::from_secs(1), "{way:?}: {event}");
    }
}

/// Near the limit, outcome and event must agree, and no success may exceed limit and grace.
#[test]
fn no_success_is_longer_than_limit_and_grace() {
    const ROUNDS: usize = 60;
    const LONGEST: Duration = Duration::from_millis(3);
    let recorder = record("one_outcome::race");
    let mut successes = 0;
    for round in 0..ROUNDS * TIMED.len() {
        let way = TIMED[round % TIMED.len()];
        let timeout = limit("one_outcome::race", 2).with_grace(Duration::from_millis(1));
        let outcome = way.run(&timeout, |token| {
            while token.remaining().is_some_and(|left| !left.is_zero()) {
                std::hint::spin_loop();
            }
            let busy = std::time::Instant::now();
            while busy.elapsed() < Duration::from_micros(900) {
                std::hint::spin_loop();
            }
            Ok::<_, TimeoutError>(7)
        });
        successes += usize::from(outcome.status() == CallStatus::Ok);
    }
    support::eventually("nothing is abandoned", || {
        timeout_runtime::workers::abandoned()
            .iter()
            .all(|left| left.name != "one_outcome::race")
    });
    let mut outcomes = HashMap::<CallId, usize>::new();
    let mut succeeded = 0;
    for event in recorder.events() {
        *outcomes.entry(event.call).or_default() += usize::from(!support::is_late(&event.kind));
        if event.kind == EventKind::Succeeded {
            succeeded += 1;
            assert!(event.elapsed <= LONGEST, "{event}");
        }
    }
    assert_eq!(succeeded, successes);
    assert_eq!(outcomes.len(), ROUNDS * TIMED.len());
    assert!(outcomes.values().all(|&count| count == 1), "{outcomes:?}");
}
