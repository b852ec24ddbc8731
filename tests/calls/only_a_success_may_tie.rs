//! An error counts only before the cancellation; a success counts until the wait ends.

use crate::support;
use std::fmt;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, Way, assert_timed_out, limit, past_short, record, short,
    until_past,
};
use timeout_runtime::{CancelToken, EventKind, Failure, Outcome, TimeoutError};

const GRACE: Duration = Duration::from_secs(60);

#[test]
fn every_runner_reports_an_error_before_the_cancellation_as_a_failure() {
    for way in EVERY_WAY {
        let recorder = record("only_a_success::before");
        let outcome = way.run(&limit("only_a_success::before", 60_000), |_| {
            Err::<(), _>("disk full")
        });
        assert!(
            matches!(outcome, Outcome::Failure("disk full")),
            "{way:?}: {outcome:?}"
        );
        assert_eq!(
            recorder.kinds(),
            [EventKind::Failed(Failure::Error("\"disk full\"".into()))],
            "{way:?}"
        );
    }
}

/// The error of an operation that stops at its cancellation used to be its own failure.
#[test]
fn an_error_after_the_deadline_is_a_timeout_also_within_the_grace() {
    for way in EVERY_WAY {
        let recorder = record("only_a_success::grace");
        let timeout = limit("only_a_success::grace", short()).with_grace(GRACE);
        let outcome = way.run(&timeout, |token| {
            until_past(&token);
            Err::<(), _>("interrupted")
        });
        assert_timed_out(way, &outcome);
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::TimedOut,
                EventKind::AbandonedWorkerFailed(Failure::Error("\"interrupted\"".into()))
            ],
            "{way:?}"
        );
    }
}

#[test]
fn an_error_after_the_cancellation_is_a_cancelled_outcome() {
    for way in EVERY_WAY {
        let recorder = record("only_a_success::cancelled");
        let timeout = limit("only_a_success::cancelled", 60_000).with_grace(GRACE);
        let outcome = way.run(&timeout, |token| {
            token.cancel();
            Err::<(), _>("interrupted")
        });
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::Cancelled,
                EventKind::AbandonedWorkerFailed(Failure::Error("\"interrupted\"".into()))
            ],
            "{way:?}"
        );
    }
}

#[test]
fn a_success_after_the_cancellation_is_a_success() {
    for way in EVERY_WAY {
        let timeout = limit("only_a_success::success", 60_000).with_grace(GRACE);
        let outcome = way.run(&timeout, |token| {
            token.cancel();
            Ok::<_, TimeoutError>(7)
        });
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
}

/// The clock decides alone if the operation takes no token or the limit does not cancel it.
#[test]
fn an_error_after_the_deadline_is_a_timeout_without_a_cancelled_token() {
    for cancel in [true, false] {
        let timeout = limit("only_a_success::clock", short()).cancel_on_timeout(cancel);
        let outcome = Way::SyncInline.run(&timeout, |_| {
            std::thread::sleep(past_short());
            Err::<(), _>("too slow")
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
    }
}

/// An error whose `Debug` opens the first gate and waits for the second one.
/// The second gate stands between the operation's clock reading and its publication.
struct Slow(Gate, Gate);

impl fmt::Debug for Slow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.open();
        self.1.wait();
        f.write_str("slow")
    }
}

#[test]
fn an_error_in_time_that_is_published_too_late_is_abandoned() {
    for way in ABANDONING {
        let recorder = record("only_a_success::published");
        let (read, publish) = (Gate::new(), Gate::new());
        let error = Slow(read.clone(), publish.clone());
        let outcome = way.run(&limit("only_a_success::published", 1_000), |_| {
            Err::<(), _>(error)
        });
        read.wait();
        publish.open();
        assert_timed_out(way, &outcome);
        assert_eq!(
            recorder.wait_for(2),
            [
                EventKind::TimedOut,
                EventKind::AbandonedWorkerFailed(Failure::Error("slow".into()))
            ],
            "{way:?}"
        );
        let event = &recorder.events()[1];
        assert!(event.elapsed <= Duration::from_secs(1), "{way:?}: {event}");
    }
}

annotated! {
    mod nothing, [name = "only_a_success::nothing", secs = 60, grace = GRACE], (found: Option<u8>, cancels: bool) -> Option<u8> {
        if cancels {
            let token: CancelToken = cancel_token;
            token.cancel();
        }
        found
    }
}

/// `None` is the result of a search without a match, and of a search that was cancelled.
#[test]
fn none_is_a_success_before_the_cancellation_and_an_error_after_it() {
    for way in EVERY_WAY {
        let recorder = record("only_a_success::nothing");
        assert_eq!(nothing::call(way, None, false), None);
        assert_eq!(nothing::call(way, Some(7), true), Some(7));
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::Succeeded, EventKind::Succeeded],
            "{way:?}"
        );
        assert_eq!(nothing::call(way, None, true), None);
        let events = recorder.wait_for(4);
        assert_eq!(events[2], EventKind::Cancelled, "{way:?}");
        assert!(
            matches!(events[3], EventKind::AbandonedWorkerFailed(_)),
            "{way:?}: {events:?}"
        );
    }
}
