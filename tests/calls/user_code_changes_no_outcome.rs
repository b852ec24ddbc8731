//! User code that runs when a call ends may panic, block or make calls. It changes no outcome, runs
//! under no lock of the runtime and ends no worker.

use crate::support;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::SystemTime;

use support::{
    ABANDONING, EVERY_WAY, Gate, LONG, OnDrop, SOON, TIMED, Way, assert_timed_out, limit, record,
    short, until_cancelled, until_past,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Deadline, EventKind, Failure, FromTimeout, Outcome,
    Registration, Returned, TimeoutError, add_listener,
};

/// Makes a call that succeeds and one that times out, and checks both outcomes.
#[track_caller]
fn both_outcomes(way: Way, name: &'static str) {
    let success = way.run(&limit(name, LONG), |_| Ok::<_, TimeoutError>(7));
    assert!(
        matches!(success, Outcome::Success(7)),
        "{way:?}: {success:?}"
    );
    let expired = way.run(&limit(name, short()), |token| until_cancelled(&token));
    assert_timed_out(way, &expired);
}

#[test]
fn a_panicking_listener_affects_no_call_and_no_other_listener() {
    let panics = add_listener(|event| {
        assert_ne!(event.name, "user_code::listener_panics");
    });
    for way in EVERY_WAY {
        // Registered after the listener that panics, so called after it.
        let recorder = record("user_code::listener_panics");
        both_outcomes(way, "user_code::listener_panics");
        let events = recorder.wait_for(3);
        assert_eq!(
            events[..2],
            [EventKind::Succeeded, EventKind::TimedOut],
            "{way:?}"
        );
    }
    drop(panics);
}

#[test]
fn a_blocking_listener_delays_only_the_call_of_its_event() {
    for way in EVERY_WAY {
        let (entered, release) = (Gate::new(), Gate::new());
        let (is_in, held) = (entered.clone(), release.clone());
        let blocks = limit("user_code::listener_blocks", LONG).with_listener(move |_| {
            is_in.open();
            held.wait();
        });
        let blocked = thread::spawn(move || way.run(&blocks, |_| Ok::<_, TimeoutError>(7)));
        entered.wait();
        both_outcomes(way, "user_code::beside_a_block");
        drop(add_listener(|_| ()));
        release.open();
        let outcome = blocked.join().unwrap();
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
}

/// A listener must not receive events of its own calls, late events included. Others receive them.
#[test]
fn a_listener_does_not_receive_events_of_its_own_calls() {
    for outer_way in EVERY_WAY {
        for inner_way in ABANDONING {
            let received = Arc::<Mutex<Vec<&'static str>>>::default();
            let sink = received.clone();
            let listener = add_listener(move |event| {
                if !event.name.starts_with("user_code::by_listener")
                    && event.name != "user_code::outer"
                {
                    return;
                }
                sink.lock().unwrap().push(event.name);
                let gate = Gate::new();
                let held = gate.clone();
                let _ = inner_way.run(&limit("user_code::by_listener", short()), move |_| {
                    held.wait();
                    Ok::<_, TimeoutError>(7)
                });
                gate.open();
            });
            // Registered after the listener above, so called after it.
            let inner = record("user_code::by_listener");
            let _ = outer_way.run(&limit("user_code::outer", LONG), |_| {
                Ok::<_, TimeoutError>(7)
            });
            assert_eq!(
                inner.wait_for(2),
                [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
                "{inner_way:?} in {outer_way:?}"
            );
            drop(listener);
            assert_eq!(
                *received.lock().unwrap(),
                ["user_code::outer"],
                "{inner_way:?} in {outer_way:?}"
            );
        }
    }
}

#[test]
fn a_listener_may_add_listeners_and_remove_itself() {
    let own = Arc::<Mutex<Option<Registration>>>::default();
    let (handle, calls) = (own.clone(), Arc::<AtomicUsize>::default());
    let counted = calls.clone();
    *own.lock().unwrap() = Some(add_listener(move |event| {
        if event.name == "user_code::removes_itself" {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(add_listener(|_| ()));
            let me = handle.lock().unwrap().take();
            drop(me);
        }
    }));
    for _ in 0..2 {
        let _ = Way::SyncInline.run(&limit("user_code::removes_itself", LONG), |_| {
            Ok::<_, TimeoutError>(7)
        });
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// A value that makes a call when it is dropped, and then panics.
fn panics_when_dropped() -> OnDrop<impl FnMut() + Send + Sync + use<>> {
    OnDrop(|| {
        both_outcomes(Way::SyncWorker, "user_code::in_destructor");
        assert!(thread::panicking(), "a destructor's own panic");
    })
}

#[test]
fn a_listener_whose_destructor_panics_can_be_removed() {
    let held = panics_when_dropped();
    let listener = add_listener(move |_| {
        let _ = &held;
    });
    drop(listener);
    both_outcomes(Way::SyncWorker, "user_code::after_destructor");
}

/// The process used to abort: listeners removed during an event are dropped together after it.
// Fails if the registry drops a listener without catching its panic.
#[test]
fn listeners_whose_destructors_panic_can_be_removed_together() {
    let (entered, release) = (Gate::new(), Gate::new());
    let (is_in, held) = (entered.clone(), release.clone());
    let _blocks = add_listener(move |event| {
        if event.name == "user_code::removed_together" {
            is_in.open();
            held.wait();
        }
    });
    let removed = [(); 2].map(|()| {
        let held = OnDrop(|| panic!("a destructor's own panic"));
        add_listener(move |_| {
            let _ = &held;
        })
    });
    let call = thread::spawn(|| {
        limit("user_code::removed_together", LONG)
            .inline()
            .outcome(|_| Ok::<_, TimeoutError>(7))
    });
    entered.wait();
    drop(removed);
    release.open();
    assert_eq!(call.join().unwrap().status(), CallStatus::Ok);
}

#[test]
fn a_panicking_clock_is_replaced_by_the_systems_clock() {
    for way in EVERY_WAY {
        let recorder = record("user_code::clock");
        let before = SystemTime::now();
        let timeout =
            limit("user_code::clock", LONG).with_clock(|| -> SystemTime { panic!("no time") });
        let outcome = way.run(&timeout, |_| Ok::<_, TimeoutError>(7));
        assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}: {outcome:?}");
        assert!(recorder.events()[0].timestamp >= before, "{way:?}");
    }
}

// Fails if the runtime drops a late value without catching its panic.
#[test]
fn a_late_value_whose_destructor_panics_is_reported_and_ends_no_worker() {
    for way in TIMED {
        let recorder = record("user_code::value");
        let outcome = way.run(&limit("user_code::value", short()), |token| {
            until_past(&token);
            Ok::<_, TimeoutError>(panics_when_dropped())
        });
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "{way:?}: the call did not time out"
        );
        let events = recorder.wait_for(2);
        assert_eq!(
            events,
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
        both_outcomes(way, "user_code::after_value");
    }
}

#[test]
fn a_late_value_whose_destructor_blocks_delays_no_call() {
    for way in ABANDONING {
        let recorder = record("user_code::blocks");
        let release = Gate::new();
        let held = release.clone();
        let value = OnDrop(move || held.wait());
        let outcome = way.run(&limit("user_code::blocks", short()), |token| {
            until_past(&token);
            Ok::<_, TimeoutError>(value)
        });
        assert!(
            matches!(outcome, Outcome::TimedOut(_)),
            "{way:?}: the call did not time out"
        );
        both_outcomes(way, "user_code::beside_destructor");
        assert_eq!(recorder.kinds(), [EventKind::TimedOut], "{way:?}");
        release.open();
        recorder.wait_for(2);
    }
}

/// The payload of a late panic is dropped by the runtime.
#[test]
fn a_late_panic_whose_payload_panics_when_dropped_is_reported_and_ends_no_worker() {
    for way in ABANDONING {
        let recorder = record("user_code::payload");
        let gate = Gate::new();
        let held = gate.clone();
        let outcome =
            way.run::<(), TimeoutError>(&limit("user_code::payload", short()), move |_| {
                held.wait();
                panic_any(panics_when_dropped())
            });
        assert_timed_out(way, &outcome);
        gate.open();
        assert!(
            matches!(
                recorder.wait_for(2)[..],
                [
                    EventKind::TimedOut,
                    EventKind::AbandonedWorkerFailed(Failure::Panic(_))
                ]
            ),
            "{way:?}"
        );
        both_outcomes(way, "user_code::after_payload");
    }
}

#[test]
fn an_error_whose_debug_panics_is_a_failure() {
    struct Unprintable;

    impl fmt::Debug for Unprintable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("no words")
        }
    }

    for way in EVERY_WAY {
        let recorder = record("user_code::debug");
        let outcome = way.run(&limit("user_code::debug", LONG), |_| {
            Err::<(), _>(Unprintable)
        });
        assert!(
            matches!(outcome, Outcome::Failure(Unprintable)),
            "{way:?}: the call did not fail"
        );
        assert!(
            matches!(recorder.kinds()[..], [EventKind::Failed(Failure::Error(_))]),
            "{way:?}"
        );
    }
}

/// A type whose `returned` panics.
struct Dumb;

impl FromTimeout for Dumb {
    fn from_timeout(_: TimeoutError) -> Self {
        Self
    }

    fn returned(&self) -> Returned<'_> {
        panic!("no words")
    }
}

annotated! {
    mod dumb, [name = "user_code::dumb", secs = 60], () -> Dumb { Dumb }
}

#[test]
fn a_panic_while_a_result_is_classified_is_a_panic_of_the_operation() {
    for way in EVERY_WAY {
        let recorder = record("user_code::dumb");
        assert!(catch_unwind(|| dumb::call(way)).is_err(), "{way:?}");
        assert_eq!(
            recorder.kinds(),
            [EventKind::Failed(Failure::Panic("no words".into()))],
            "{way:?}"
        );
    }
}

/// The action of a fallback, and a channel to which it reports its call.
type Script = (
    fn(),
    mpsc::Sender<(thread::ThreadId, usize, bool)>,
    fn() -> usize,
);

annotated! {
    mod falls_back, [
        name = "user_code::fallback", ms = short(), grace = std::time::Duration::from_secs(60),
        fallback = {
            let (act, called, count) = script.clone();
            move |error: TimeoutError| {
                assert!(error.is_timed_out());
                let detached = Deadline::current() == Deadline::never()
                    && !CallContext::current().run(CancelToken::current).is_cancelled();
                called.send((thread::current().id(), count(), detached)).unwrap();
                act();
                Err("fallback")
            }
        }
    ], (script: Script) -> Result<u32, &'static str> {
        let _ = &script;
        let token: CancelToken = cancel_token;
        until_past(&token);
        Err("late")
    }
}

/// Number of outcome events of the fallback's call. A static, since a function pointer reads it.
static OUTCOME_EVENTS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_fallback_runs_once_on_the_caller_after_the_event_and_detached() {
    let _listener = add_listener(|event| {
        if event.name == "user_code::fallback" && !support::is_late(&event.kind) {
            OUTCOME_EVENTS.fetch_add(1, Ordering::SeqCst);
        }
    });
    let acts: [fn(); 2] = [
        || both_outcomes(Way::SyncWorker, "user_code::in_fallback"),
        || panic!("the fallback panics"),
    ];
    let around = CallContext::current().with_deadline(Deadline::after(SOON * 60));
    for way in EVERY_WAY {
        for act in acts {
            let before = OUTCOME_EVENTS.load(Ordering::SeqCst);
            let (called, calls) = mpsc::channel();
            let script: Script = (act, called, || OUTCOME_EVENTS.load(Ordering::SeqCst));
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                around.run(|| falls_back::call(way, script))
            }));
            if std::ptr::fn_addr_eq(act, acts[0]) {
                assert_eq!(outcome.unwrap(), Err("fallback"), "{way:?}");
            } else {
                assert!(outcome.is_err(), "{way:?}");
            }
            let calls: Vec<_> = calls.into_iter().collect();
            assert_eq!(
                calls,
                [(thread::current().id(), before + 1, true)],
                "{way:?}"
            );
        }
    }
}
