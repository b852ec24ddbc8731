//! A call sees nothing that the previous call left on its worker.

use crate::own_process::in_own_process;
use crate::{panics, support};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::{Gate, limit, record};
use support::{short, short_limit};
use timeout_runtime::workers::Settings;
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, EventKind, Outcome, TimeoutError, add_listener,
};
use tokio::runtime::{Builder, Handle, Runtime};

/// Records expected panics, and runs all calls of the test on the same worker.
fn use_one_worker() {
    panics::record_panics();
    Settings {
        cap: 1,
        keep_alive: Duration::from_secs(600),
        ..Settings::current()
    }
    .apply();
}

#[derive(Clone, Copy, Debug)]
enum First {
    Success,
    Error,
    Panic,
    LateSuccess,
    LatePanic,
    /// Late, because an enclosing deadline has passed.
    PastOuterDeadline,
    /// Late, because an inherited token was cancelled.
    Cancelled,
}

const EVERY_FIRST: [First; 7] = [
    First::Success,
    First::Error,
    First::Panic,
    First::LateSuccess,
    First::LatePanic,
    First::PastOuterDeadline,
    First::Cancelled,
];

const OUTER: Duration = Duration::from_secs(100);

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Makes a call inside a deadline, a token that is then cancelled, and a runtime that is then
/// dropped. The call ends before this returns, or once the gate is open.
fn first_call(first: First) -> Gate {
    let release = Gate::new();
    let body = release.clone();
    let outer = CancelToken::new();
    let context = CallContext::detached()
        .with_deadline(Deadline::after(match first {
            First::PastOuterDeadline => short_limit(),
            _ => OUTER,
        }))
        .with_token(&outer);
    let (own_limit, is_late) = match first {
        First::LateSuccess | First::LatePanic => (short(), true),
        First::PastOuterDeadline | First::Cancelled => (60_000, true),
        _ => (60_000, false),
    };
    let timeout = limit("workers_start_clean::first", own_limit);
    let cancels = outer.clone();
    let runtime = runtime();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            context.run(|| {
                timeout.outcome(move |_| {
                    Handle::current();
                    if matches!(first, First::Cancelled) {
                        cancels.cancel();
                    }
                    if is_late {
                        body.wait();
                    }
                    match first {
                        First::Success
                        | First::LateSuccess
                        | First::PastOuterDeadline
                        | First::Cancelled => Ok(()),
                        First::Error => Err(()),
                        First::Panic | First::LatePanic => panic!("wanted: {first:?}"),
                    }
                })
            })
        })
    }));
    match (first, outcome) {
        (First::Success, Ok(Outcome::Success(())))
        | (First::Error, Ok(Outcome::Failure(())))
        | (First::Panic, Err(_))
        | (First::LateSuccess | First::LatePanic, Ok(Outcome::TimedOut(_)))
        | (First::PastOuterDeadline, Ok(Outcome::DeadlineExceeded(_)))
        | (First::Cancelled, Ok(Outcome::Cancelled(_))) => {}
        (_, outcome) => panic!("{first:?}: {outcome:?}"),
    }
    outer.cancel();
    release
}

/// A worker used to keep the deadline, token or runtime of a call that did not end normally.
#[test]
fn a_call_sees_only_its_own_context_after_any_previous_outcome() {
    in_own_process(|| {
        use_one_worker();
        let recorder = record("workers_start_clean::second");
        for first in EVERY_FIRST {
            let release = first_call(first);
            release.open();
            let second = limit("workers_start_clean::second", 200_000).outcome(|token| {
                let left = Deadline::current().remaining();
                assert!(left.is_some_and(|left| left > OUTER), "{left:?}");
                assert!(!token.is_cancelled());
                let current = CancelToken::current();
                assert!(current.check().is_ok());
                let below = current.child();
                below.cancel();
                let error = below.check().unwrap_err();
                assert_eq!(error.name(), "workers_start_clean::second");
                assert!(Handle::try_current().is_err());
                Ok::<_, TimeoutError>(())
            });
            assert_eq!(second.status(), CallStatus::Ok, "{first:?}: {second:?}");
        }
        let workers: Vec<_> = recorder.events().iter().map(|event| event.worker).collect();
        assert!(workers[0].is_some());
        assert_eq!(workers, [workers[0]; 7], "one worker only");
    });
}

/// A worker used to keep the handle of a dropped runtime, although the next call had its own.
#[test]
fn a_call_sees_the_runtime_of_its_own_caller() {
    in_own_process(|| {
        use_one_worker();
        for first in EVERY_FIRST {
            first_call(first).open();
            let own = runtime();
            let seen = own.block_on(async {
                limit("workers_start_clean::runtime", 200_000)
                    .outcome(|_| Ok::<_, TimeoutError>(Handle::current().id()))
            });
            assert_eq!(seen.success(), Some(own.handle().id()), "{first:?}");
        }
    });
}

/// A listener used to stay muted on a worker after a call that was made inside it.
#[test]
fn a_listener_receives_events_of_calls_on_a_worker_that_it_used() {
    in_own_process(|| {
        use_one_worker();
        for first in EVERY_FIRST {
            let received = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&received);
            let gate = Arc::new(Mutex::new(None));
            let keeps = Arc::clone(&gate);
            let _listener = add_listener(move |event| match event.name {
                "workers_start_clean::calls_listener" => {
                    *keeps.lock().unwrap() = Some(first_call(first));
                }
                "workers_start_clean::on_worker" => {
                    assert_eq!(event.kind, EventKind::Succeeded);
                    count.fetch_add(1, Ordering::SeqCst);
                }
                _ => {}
            });
            let trigger = limit("workers_start_clean::calls_listener", 200_000)
                .inline()
                .outcome(|_| Ok::<_, TimeoutError>(()));
            assert_eq!(trigger.status(), CallStatus::Ok, "{first:?}");
            gate.lock()
                .unwrap()
                .take()
                .expect("the first call was made")
                .open();

            let outcome = limit("workers_start_clean::outer", 200_000).outcome(|_| {
                limit("workers_start_clean::on_worker", 200_000)
                    .inline()
                    .call(|_| Ok::<_, TimeoutError>(()))
            });
            assert_eq!(outcome.status(), CallStatus::Ok, "{first:?}: {outcome:?}");
            assert_eq!(received.load(Ordering::SeqCst), 1, "{first:?}");
        }
    });
}
