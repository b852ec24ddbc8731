//! A listener may be removed, make calls or panic without effect on results or other listeners.

use crate::{concurrent, panics, support};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::short;
use support::{Gate, OnDrop, eventually, limit, record};
use timeout_runtime::{
    CallStatus, Event, EventKind, Outcome, Registration, Timeout, TimeoutError, add_listener,
};

/// The event of its call that the listener reacts to, once.
#[derive(Clone, Copy, Debug)]
enum On {
    SyncOutcome,
    AsyncOutcome,
    LateEvent,
}

/// How the listener reacts.
#[derive(Clone, Copy, Debug)]
enum Reaction {
    RemovesItself,
    ReplacesItself,
    MakesCalls,
    Panics,
    DropsValueThatMakesCalls,
}

const EVERY_ON: [On; 3] = [On::SyncOutcome, On::AsyncOutcome, On::LateEvent];
const EVERY_REACTION: [Reaction; 5] = [
    Reaction::RemovesItself,
    Reaction::ReplacesItself,
    Reaction::MakesCalls,
    Reaction::Panics,
    Reaction::DropsValueThatMakesCalls,
];

fn make_calls(name: &'static str) {
    let on_worker = limit(name, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
    assert_eq!(on_worker.status(), CallStatus::Ok, "{on_worker:?}");
    let inline = limit(name, 60_000)
        .inline()
        .outcome(|_| Ok::<_, TimeoutError>(()));
    assert_eq!(inline.status(), CallStatus::Ok, "{inline:?}");
}

/// Makes a call with the outcome that `on` names, and its late event; asserts the result.
fn call(on: On, name: &'static str) {
    match on {
        On::SyncOutcome => {
            let outcome = limit(name, 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
            assert!(matches!(outcome, Outcome::Success(7)), "{outcome:?}");
        }
        On::AsyncOutcome => {
            let call = limit(name, 60_000).outcome_async(|_| async { Ok::<_, TimeoutError>(7) });
            let outcome = futures::executor::block_on(call);
            assert!(matches!(outcome, Outcome::Success(7)), "{outcome:?}");
        }
        On::LateEvent => {
            let release = Gate::new();
            let body = release.clone();
            let outcome = limit(name, short()).outcome(move |_| {
                body.wait();
                Ok::<_, TimeoutError>(7)
            });
            release.open();
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
        }
    }
}

fn events_of(on: On) -> Vec<EventKind<'static>> {
    match on {
        On::SyncOutcome | On::AsyncOutcome => vec![EventKind::Succeeded],
        On::LateEvent => vec![EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
    }
}

/// The listener under test, and the number of events of `name` and `inner` that it received.
struct Subject {
    place: Arc<Mutex<Option<Registration>>>,
    received: Arc<AtomicUsize>,
    received_inner: Arc<AtomicUsize>,
}

fn subject(on: On, reaction: Reaction, name: &'static str, inner: &'static str) -> Subject {
    let subject = Subject {
        place: Arc::default(),
        received: Arc::default(),
        received_inner: Arc::default(),
    };
    let place = Arc::clone(&subject.place);
    let (received, received_inner) = (
        Arc::clone(&subject.received),
        Arc::clone(&subject.received_inner),
    );
    let reacted = AtomicBool::new(false);
    let last_handle = Mutex::new(
        matches!(reaction, Reaction::DropsValueThatMakesCalls)
            .then(|| Arc::new(OnDrop(move || make_calls(inner)))),
    );
    let listener = add_listener(move |event| {
        if event.name == inner {
            received_inner.fetch_add(1, Ordering::SeqCst);
        }
        if event.name != name {
            return;
        }
        received.fetch_add(1, Ordering::SeqCst);
        let is_awaited = !matches!(on, On::LateEvent) || support::is_late(&event.kind);
        if !is_awaited || reacted.swap(true, Ordering::SeqCst) {
            return;
        }
        match reaction {
            Reaction::RemovesItself => *place.lock().unwrap() = None,
            Reaction::ReplacesItself => {
                let received = Arc::clone(&received);
                let other = add_listener(move |event: &Event<'_>| {
                    if event.name == name {
                        received.fetch_add(1, Ordering::SeqCst);
                    }
                });
                *place.lock().unwrap() = Some(other);
            }
            Reaction::MakesCalls => make_calls(inner),
            Reaction::Panics => panic!("wanted: a listener"),
            Reaction::DropsValueThatMakesCalls => {
                let handle = last_handle.lock().unwrap().take();
                drop(handle);
            }
        }
    });
    *subject.place.lock().unwrap() = Some(listener);
    subject
}

fn check(on: On, reaction: Reaction) {
    let name: &str = Box::leak(format!("listeners_reenter::{on:?}::{reaction:?}").into_boxed_str());
    let inner: &str = Box::leak(format!("{name}::inner").into_boxed_str());
    let (before, inside) = (record(name), record(inner));
    let subject = subject(on, reaction, name, inner);
    let after = record(name);

    let once = events_of(on);
    call(on, name);
    assert_eq!(before.wait_for(once.len()), once, "the earlier listener");
    assert_eq!(after.wait_for(once.len()), once, "the later listener");
    call(on, name);
    let twice = [once.clone(), once.clone()].concat();
    assert_eq!(before.wait_for(twice.len()), twice);
    assert_eq!(after.wait_for(twice.len()), twice);

    let received = match reaction {
        Reaction::RemovesItself => once.len(),
        _ => twice.len(),
    };
    // A replacement receives its events after the two recorders above.
    eventually("the listener receives every event", || {
        subject.received.load(Ordering::SeqCst) >= received
    });
    assert_eq!(subject.received.load(Ordering::SeqCst), received);
    let calls_inside = match reaction {
        Reaction::MakesCalls | Reaction::DropsValueThatMakesCalls => 2,
        _ => 0,
    };
    assert_eq!(inside.kinds(), vec![EventKind::Succeeded; calls_inside]);
    assert_eq!(
        subject.received_inner.load(Ordering::SeqCst),
        0,
        "a listener receives no events that it causes itself"
    );
    let newcomer = record(name);
    call(on, name);
    assert_eq!(
        newcomer.wait_for(once.len()),
        once,
        "a listener added afterwards"
    );
}

/// Listeners used to be called under the registry's lock, which a panic poisoned.
#[test]
fn a_listeners_reaction_changes_no_result_and_stops_no_events() {
    panics::record_panics();
    for on in EVERY_ON {
        for reaction in EVERY_REACTION {
            concurrent::must_return(move || check(on, reaction));
        }
    }
}

/// Listeners that make calls at every event, also of each other, must not recurse for ever.
#[test]
fn listeners_that_make_a_call_at_every_event_do_not_recurse_for_ever() {
    const NAME: &str = "listeners_reenter::ping_pong";

    let received = concurrent::must_return(|| {
        let received = Arc::new(AtomicUsize::new(0));
        let _listeners: Vec<_> = (0..3)
            .map(|_| {
                let received = Arc::clone(&received);
                add_listener(move |event| {
                    if event.name == NAME {
                        received.fetch_add(1, Ordering::SeqCst);
                        let inside = limit(NAME, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
                        assert_eq!(inside.status(), CallStatus::Ok, "{inside:?}");
                    }
                })
            })
            .collect();
        let outcome = limit(NAME, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
        assert_eq!(outcome.status(), CallStatus::Ok, "{outcome:?}");
        received.load(Ordering::SeqCst)
    });
    // Three listeners; each receives the calls of the other two, two levels deep.
    assert_eq!(received, 3 + 3 * 2 + 3 * 2);
}

/// A listener used to be dropped under the registry's lock; its destructor may make calls and
/// panic.
#[test]
fn a_listeners_destructor_may_make_calls() {
    panics::record_panics();
    concurrent::must_return(|| {
        let inside = record("listeners_reenter::holder");
        let holds = (
            OnDrop(|| make_calls("listeners_reenter::holder")),
            OnDrop(|| panic!("wanted: a listener's destructor")),
        );
        let place = Arc::new(Mutex::new(None));
        let own = Arc::clone(&place);
        let listener = add_listener(move |event| {
            let _ = &holds;
            if event.name == "listeners_reenter::held" {
                *own.lock().unwrap() = None;
            }
        });
        *place.lock().unwrap() = Some(listener);
        call(On::SyncOutcome, "listeners_reenter::held");
        // Another thread may be emitting an event, and drop the listener after that.
        assert_eq!(inside.wait_for(2), vec![EventKind::Succeeded; 2]);
    });
}

/// The destructor of an operation that never started used to run on another thread, where the
/// listener was not muted: it received the events that it had caused, without end.
#[test]
fn a_listener_receives_no_events_of_unstarted_operations_that_it_caused() {
    for way in support::ABANDONING {
        let name = "listeners_reenter::unstarted";
        let dropped = Gate::new();
        let (count, is_dropped) = (Arc::<AtomicUsize>::default(), dropped.clone());
        let counter = Arc::clone(&count);
        let listener = add_listener(move |event| {
            // Without muting, the listener would cause events without end.
            if event.name != name || counter.fetch_add(1, Ordering::SeqCst) > 20 {
                return;
            }
            let is_dropped = is_dropped.clone();
            let held = OnDrop(move || {
                make_calls(name);
                is_dropped.open();
            });
            let expired = Timeout::new("listeners_reenter::expired", Duration::from_nanos(1));
            let outcome = way.run(&expired.unwrap(), move |_| {
                let _held = &held;
                Ok::<_, TimeoutError>(())
            });
            assert_ne!(outcome.status(), CallStatus::Ok, "{way:?}: {outcome:?}");
        });
        call(On::SyncOutcome, name);
        dropped.wait();
        drop(listener);
        assert_eq!(count.load(Ordering::SeqCst), 1, "{way:?}");
    }
}
