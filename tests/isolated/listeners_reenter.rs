//! A listener may do anything: be removed, make calls, panic. It changes nobody's result and silences nobody.

#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::short;
use support::{Gate, eventually, limit, record};
use timeout_runtime::{
    Event, EventKind, ListenerHandle, Outcome, Timeout, TimeoutError, add_listener,
};

/// Which event of its call the listener reacts to, once.
#[derive(Clone, Copy, Debug)]
enum On {
    SyncVerdict,
    AsyncVerdict,
    LateReport,
}

/// How it reacts.
#[derive(Clone, Copy, Debug)]
enum Reaction {
    RemovesItself,
    ReplacesItself,
    MakesCalls,
    Panics,
    DropsWhatMakesACall,
}

const EVERY_ON: [On; 3] = [On::SyncVerdict, On::AsyncVerdict, On::LateReport];
const EVERY_REACTION: [Reaction; 5] = [
    Reaction::RemovesItself,
    Reaction::ReplacesItself,
    Reaction::MakesCalls,
    Reaction::Panics,
    Reaction::DropsWhatMakesACall,
];

fn make_calls(name: &'static str) {
    let on_worker = limit(name, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
    assert!(on_worker.is_success(), "{on_worker:?}");
    let inline = limit(name, 60_000)
        .inline()
        .outcome(|_| Ok::<_, TimeoutError>(()));
    assert!(inline.is_success(), "{inline:?}");
}

struct CallsWhenDropped(&'static str);

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        make_calls(self.0);
    }
}

/// A call that ends as `on` says, and its late report with it; the right result.
fn call(on: On, name: &'static str) {
    match on {
        On::SyncVerdict => {
            let outcome = limit(name, 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
            assert!(matches!(outcome, Outcome::Success(7)), "{outcome:?}");
        }
        On::AsyncVerdict => {
            let call = limit(name, 60_000).outcome_async(|_| async { Ok::<_, TimeoutError>(7) });
            let outcome = futures::executor::block_on(call);
            assert!(matches!(outcome, Outcome::Success(7)), "{outcome:?}");
        }
        On::LateReport => {
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

fn told_by(on: On) -> Vec<EventKind<'static>> {
    match on {
        On::SyncVerdict | On::AsyncVerdict => vec![EventKind::Succeeded],
        On::LateReport => vec![EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
    }
}

/// The listener under test, and what it has heard of `name` and of `inner`.
struct Subject {
    place: Arc<Mutex<Option<ListenerHandle>>>,
    heard: Arc<AtomicUsize>,
    heard_inner: Arc<AtomicUsize>,
}

fn subject(on: On, reaction: Reaction, name: &'static str, inner: &'static str) -> Subject {
    let subject = Subject {
        place: Arc::default(),
        heard: Arc::default(),
        heard_inner: Arc::default(),
    };
    let place = Arc::clone(&subject.place);
    let (heard, heard_inner) = (Arc::clone(&subject.heard), Arc::clone(&subject.heard_inner));
    let reacted = AtomicBool::new(false);
    let last_handle = Mutex::new(
        matches!(reaction, Reaction::DropsWhatMakesACall)
            .then(|| Arc::new(CallsWhenDropped(inner))),
    );
    let listener = add_listener(move |event| {
        if event.name == inner {
            heard_inner.fetch_add(1, Ordering::SeqCst);
        }
        if event.name != name {
            return;
        }
        heard.fetch_add(1, Ordering::SeqCst);
        let is_awaited = !matches!(on, On::LateReport) || !event.kind.is_verdict();
        if !is_awaited || reacted.swap(true, Ordering::SeqCst) {
            return;
        }
        match reaction {
            Reaction::RemovesItself => *place.lock().unwrap() = None,
            Reaction::ReplacesItself => {
                let heard = Arc::clone(&heard);
                let other = add_listener(move |event: &Event<'_>| {
                    if event.name == name {
                        heard.fetch_add(1, Ordering::SeqCst);
                    }
                });
                *place.lock().unwrap() = Some(other);
            }
            Reaction::MakesCalls => make_calls(inner),
            Reaction::Panics => panic!("wanted: a listener"),
            Reaction::DropsWhatMakesACall => {
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

    let once = told_by(on);
    call(on, name);
    assert_eq!(before.wait_for(once.len()), once, "told first");
    assert_eq!(after.wait_for(once.len()), once, "told last");
    call(on, name);
    let twice = [once.clone(), once.clone()].concat();
    assert_eq!(before.wait_for(twice.len()), twice);
    assert_eq!(after.wait_for(twice.len()), twice);

    let heard = match reaction {
        Reaction::RemovesItself => once.len(),
        _ => twice.len(),
    };
    // One that was set in its place is told after the two that are waited for above.
    eventually("it hears of every event", || {
        subject.heard.load(Ordering::SeqCst) >= heard
    });
    assert_eq!(subject.heard.load(Ordering::SeqCst), heard);
    let calls_inside = match reaction {
        Reaction::MakesCalls | Reaction::DropsWhatMakesACall => 2,
        _ => 0,
    };
    assert_eq!(inside.kinds(), vec![EventKind::Succeeded; calls_inside]);
    assert_eq!(
        subject.heard_inner.load(Ordering::SeqCst),
        0,
        "a listener hears nothing of what it causes itself"
    );
    let newcomer = record(name);
    call(on, name);
    assert_eq!(newcomer.wait_for(once.len()), once, "set afterwards");
}

/// Guards against listeners that are called under the registry's lock, poison it, or silence those after them.
#[test]
fn whatever_a_listener_does_results_stay_and_events_go_on() {
    panics::record_panics();
    for on in EVERY_ON {
        for reaction in EVERY_REACTION {
            crowd::ends(move || check(on, reaction));
        }
    }
}

/// Guards against recursion without end between listeners that make calls at every event, each other's too.
#[test]
fn listeners_that_answer_every_event_with_a_call_come_to_an_end() {
    const NAME: &str = "listeners_reenter::ping_pong";

    let told = crowd::ends(|| {
        let told = Arc::new(AtomicUsize::new(0));
        let _listeners: Vec<_> = (0..3)
            .map(|_| {
                let told = Arc::clone(&told);
                add_listener(move |event| {
                    if event.name == NAME {
                        told.fetch_add(1, Ordering::SeqCst);
                        let inside = limit(NAME, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
                        assert!(inside.is_success(), "{inside:?}");
                    }
                })
            })
            .collect();
        let outcome = limit(NAME, 60_000).outcome(|_| Ok::<_, TimeoutError>(()));
        assert!(outcome.is_success(), "{outcome:?}");
        told.load(Ordering::SeqCst)
    });
    // Each of three, each of the other two within it, the last one within those.
    assert_eq!(told, 3 + 3 * 2 + 3 * 2);
}

/// Guards against a listener that is dropped under the registry's lock: what it holds may make calls, and panic.
#[test]
fn a_listener_may_hold_what_makes_a_call_when_dropped() {
    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("wanted: a listener's destructor");
        }
    }

    panics::record_panics();
    crowd::ends(|| {
        let inside = record("listeners_reenter::holder");
        let holds = (CallsWhenDropped("listeners_reenter::holder"), Panics);
        let place = Arc::new(Mutex::new(None));
        let own = Arc::clone(&place);
        let listener = add_listener(move |event| {
            let _ = &holds;
            if event.name == "listeners_reenter::held" {
                *own.lock().unwrap() = None;
            }
        });
        *place.lock().unwrap() = Some(listener);
        call(On::SyncVerdict, "listeners_reenter::held");
        // Somebody else may be telling an event, and drop the listener once that is done.
        assert_eq!(inside.wait_for(2), vec![EventKind::Succeeded; 2]);
    });
}

/// The destructor of an operation that never started ran on another thread, where the listener was
/// not muted: it received the events that it had caused, without end.
#[test]
fn a_listener_receives_no_events_of_unstarted_operations_that_it_caused() {
    for way in support::APART {
        let name = "listeners_reenter::unstarted";
        let dropped = Gate::new();
        let (count, is_dropped) = (Arc::<AtomicUsize>::default(), dropped.clone());
        let counter = Arc::clone(&count);
        let listener = add_listener(move |event| {
            // A listener that receives its own events would go on without end.
            if event.name != name || counter.fetch_add(1, Ordering::SeqCst) > 20 {
                return;
            }
            let held = (CallsWhenDropped(name), OpensWhenDropped(is_dropped.clone()));
            let expired = Timeout::new("listeners_reenter::expired", Duration::from_nanos(1));
            let outcome = way.run(&expired.unwrap(), move |_| {
                let _held = &held;
                Ok::<_, TimeoutError>(())
            });
            assert!(!outcome.is_success(), "{way:?}: {outcome:?}");
        });
        call(On::SyncVerdict, name);
        dropped.wait();
        drop(listener);
        assert_eq!(count.load(Ordering::SeqCst), 1, "{way:?}");
    }
}

/// Opens its gate last, when the values before it were dropped.
struct OpensWhenDropped(Gate);

impl Drop for OpensWhenDropped {
    fn drop(&mut self) {
        self.0.open();
    }
}
