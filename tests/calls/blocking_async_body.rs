//! An async body that blocks its thread delays neither the deadline nor, off its thread, the
//! caller.

use crate::{concurrent, support};
use std::time::{Duration, Instant};

use support::{EVERY_WAY, Gate, SOON, Way, assert_timed_out, limit, record};
use support::{short, short_limit};
use timeout_runtime::{EventKind, Outcome, TimeoutError};
use tokio::runtime;

/// A result after the limit used to be a success if one poll had produced it.
#[test]
fn a_result_after_the_limit_is_late_unless_an_inline_poll_returns_it() {
    for way in EVERY_WAY {
        let name = Box::leak(format!("blocking_async_body::late::{way:?}").into_boxed_str());
        let recorder = record(name);
        let outcome = way.run(&limit(name, short()), |_| {
            std::thread::sleep(short_limit() + short_limit() / 2);
            Ok::<_, TimeoutError>(1)
        });
        if way == Way::AsyncInline {
            assert!(matches!(outcome, Outcome::Success(1)), "{outcome:?}");
            assert_eq!(recorder.wait_for(1), [EventKind::Succeeded]);
        } else {
            let Outcome::TimedOut(error) = outcome else {
                panic!("{way:?}: {outcome:?}");
            };
            assert!(error.elapsed() >= short_limit(), "{way:?}: {error}");
            assert_eq!(
                recorder.wait_for(2),
                [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
                "{way:?}"
            );
        }
        for event in recorder.events() {
            assert!(event.elapsed >= short_limit(), "{way:?}: {event}");
        }
    }
}

/// A blocking body must not delay its caller with `run = "task"` or on a worker.
#[test]
fn a_blocking_body_on_another_thread_does_not_delay_its_caller() {
    for way in [Way::AsyncTask, Way::AsyncWorker] {
        let release = Gate::new();
        let body = release.clone();
        let outcome = concurrent::must_return(move || {
            way.run(&limit("blocking_async_body::free", short()), move |_| {
                body.wait();
                Ok::<_, TimeoutError>(1)
            })
        });
        release.open();
        assert_timed_out(way, &outcome);
    }
}

/// The limit used to be checked only before the first poll.
#[test]
fn a_body_that_blocks_in_each_poll_times_out_between_polls() {
    let start = Instant::now();
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    let outcome: Outcome<(), TimeoutError> = runtime.block_on(
        limit("blocking_async_body::pieces", short()).outcome_async(|_| async {
            while start.elapsed() < SOON {
                std::thread::sleep(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
            Ok(())
        }),
    );
    assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
}
