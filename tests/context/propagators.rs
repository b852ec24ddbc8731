//! Values captured by propagators on the caller's thread are in place during an operation
//! elsewhere, even if user code panics, and are removed after it.

use crate::own_process::in_own_process;
use crate::{support, user_code};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use support::{
    ABANDONING, Drops, EVERY_WAY, Gate, LONG, OnDrop, Way, block_on, limit, record, runtime, short,
};
use timeout_runtime::workers::Settings;
use timeout_runtime::{
    CallStatus, EventKind, Outcome, Registration, TimeoutError, add_listener, add_propagator,
};
use user_code::{Act, WANTED, caught, works};

thread_local! {
    static LABEL: Cell<&'static str> = const { Cell::new("no label") };
}

/// Restores the previous label when dropped.
struct Leave(&'static str);

impl Drop for Leave {
    fn drop(&mut self) {
        LABEL.set(self.0);
    }
}

fn propagate_label() -> Registration {
    add_propagator(|| {
        let label = LABEL.get();
        move || Leave(LABEL.replace(label))
    })
}

/// The label that an operation sees.
fn found(way: Way) -> &'static str {
    let outcome = way.run(&limit("propagators::find", LONG), |_| {
        Ok::<_, TimeoutError>(LABEL.get())
    });
    outcome.success().unwrap()
}

/// The recorded steps, in their order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, done: &str) {
        self.0.lock().unwrap().push(done.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self, done: &str) -> usize {
        let log = self.0.lock().unwrap();
        log.iter().filter(|other| *other == done).count()
    }

    /// A value that records `done` when it is dropped.
    fn at_the_end(&self, done: String) -> AtTheEnd {
        AtTheEnd(self.clone(), done)
    }

    fn propagate(&self, name: &'static str) -> Registration {
        let log = self.clone();
        add_propagator(move || {
            log.note(&format!("capture {name}"));
            let captured = log.at_the_end(format!("drop {name}"));
            move || {
                captured.0.note(&format!("enter {name}"));
                captured.0.at_the_end(format!("leave {name}"))
            }
        })
    }
}

struct AtTheEnd(Log, String);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.note(&self.1);
    }
}

// Fails if the guard that a propagator returned is forgotten.
#[test]
fn captured_values_are_in_place_everywhere_and_removed_afterwards() {
    in_own_process(|| {
        LABEL.set("the caller's");
        for way in EVERY_WAY {
            let handle = propagate_label();
            assert_eq!(found(way), "the caller's", "{way:?}");
            LABEL.set("another label");
            assert_eq!(found(way), "another label", "{way:?}");
            LABEL.set("the caller's");
            drop(handle);
            let expected = if way.abandons() {
                "no label"
            } else {
                "the caller's"
            };
            assert_eq!(found(way), expected, "{way:?}: a label remains");
        }
    });
}

#[test]
fn captured_values_propagate_to_nested_calls() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        for outer in ABANDONING {
            for inner in EVERY_WAY {
                let seen = outer.run(&limit("propagators::outer", LONG), move |_| {
                    Ok::<_, TimeoutError>((found(inner), LABEL.get()))
                });
                let expected = ("the caller's", "the caller's");
                assert_eq!(seen.success(), Some(expected), "{inner:?} in {outer:?}");
            }
        }
    });
}

/// A caller must not continue while its captured values, such as a span, are still in use.
// Fails if guards are dropped in the order of their creation, or if captured values are leaked.
#[test]
fn captured_values_are_exited_and_dropped_before_the_caller_continues() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let log = Log::default();
        let _handles = [log.propagate("one"), log.propagate("two")];
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            for _ in 0..100 {
                let in_it = log.clone();
                let outcome = way.run(&limit("propagators::order", LONG), move |_| {
                    in_it.note("operation");
                    Ok::<_, TimeoutError>(())
                });
                let done = log.take();
                assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}");
                let expected = [
                    "capture one",
                    "capture two",
                    "enter one",
                    "enter two",
                    "operation",
                    "leave two",
                    "leave one",
                    "drop one",
                    "drop two",
                ];
                assert_eq!(done, expected, "{way:?}");
            }
        }
    });
}

#[test]
fn inline_calls_use_no_propagator() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let log = Log::default();
        let _handle = log.propagate("it");
        for way in [Way::SyncInline, Way::AsyncInline] {
            works(way);
            assert_eq!(log.take(), [""; 0], "{way:?}");
        }
    });
}

/// A value must not stay entered on the executor's thread while the task waits.
#[test]
fn captured_values_are_entered_for_each_poll_only() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let call = limit("propagators::polls", LONG)
                .as_task()
                .outcome_async(|_| {
                    let mut polls = 0;
                    poll_fn(move |context| {
                        assert_eq!(LABEL.replace("the operation's"), "the caller's");
                        polls += 1;
                        if polls == 3 {
                            return Poll::Ready(Ok::<_, TimeoutError>(()));
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                });
            let call = tokio::spawn(async {
                LABEL.set("the caller's");
                call.await
            });
            tokio::task::yield_now().await;
            LABEL.set("the executor's");
            while !call.is_finished() {
                tokio::task::yield_now().await;
                assert_eq!(LABEL.get(), "the executor's");
            }
            assert_eq!(call.await.unwrap().status(), CallStatus::Ok);
        });
    });
}

/// A task's variables are dropped inside its context, when the task ends or its runtime is dropped.
#[test]
fn a_tasks_variables_are_dropped_inside_its_context() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        for ends in [true, false] {
            let seen = Arc::<Mutex<Option<&'static str>>>::default();
            let (sink, begun) = (Arc::clone(&seen), Gate::new());
            let reads_label = OnDrop(move || *sink.lock().unwrap() = Some(LABEL.get()));
            let has_begun = begun.clone();
            let runtime = runtime();
            let call = limit("propagators::variables", LONG)
                .as_task()
                .outcome_async(move |_| async move {
                    let _reads_label = reads_label;
                    has_begun.open();
                    if !ends {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, TimeoutError>(())
                });
            let caller = {
                let inside = runtime.handle().clone();
                thread::spawn(move || {
                    LABEL.set("the caller's");
                    let _inside = inside.enter();
                    block_on(call)
                })
            };
            begun.wait();
            if !ends {
                drop(runtime);
            }
            assert_eq!(caller.join().unwrap().status() == CallStatus::Ok, ends);
            assert_eq!(*seen.lock().unwrap(), Some("the caller's"), "{ends}");
        }
    });
}

// Fails if the late event is emitted after the guards are dropped.
#[test]
fn a_late_event_is_emitted_inside_the_captured_context() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        for way in ABANDONING {
            let labels = Arc::<Mutex<Vec<_>>>::default();
            let sink = Arc::clone(&labels);
            let _listener = add_listener(move |event| {
                if event.name == "propagators::late" {
                    sink.lock().unwrap().push(LABEL.get());
                }
            });
            let recorder = record("propagators::late");
            let gate = Gate::new();
            let held = gate.clone();
            let outcome = way.run(&limit("propagators::late", short()), move |_| {
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{way:?}");
            gate.open();
            recorder.wait_for(2);
            assert_eq!(*labels.lock().unwrap(), ["the caller's"; 2], "{way:?}");
        }
    });
}

#[test]
fn the_late_event_of_a_dropped_call_is_emitted_inside_the_captured_context() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        let labels = Arc::<Mutex<Vec<_>>>::default();
        let sink = Arc::clone(&labels);
        let _listener = add_listener(move |event| {
            if event.name == "propagators::gone" {
                sink.lock().unwrap().push(LABEL.get());
            }
        });
        let recorder = record("propagators::gone");
        let (begun, gate) = (Gate::new(), Gate::new());
        let (begins, held) = (begun.clone(), gate.clone());
        let calls = limit("propagators::gone", LONG);
        let mut call = Box::pin(calls.on_worker().outcome_async(async move |_| {
            begins.open();
            held.wait();
            Ok::<_, TimeoutError>(())
        }));
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        begun.wait();
        drop(call);
        gate.open();
        recorder.wait_for(2);
        assert_eq!(*labels.lock().unwrap(), ["the caller's"; 2]);
    });
}

// Fails if the captured values are kept until the caller has the result.
#[test]
fn a_result_is_published_after_captured_values_are_dropped() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let (dropping, go_on) = (Gate::new(), Gate::new());
        let gates = (dropping.clone(), go_on.clone());
        let handle = add_propagator(move || {
            let (dropping, go_on) = gates.clone();
            let blocks = OnDrop(move || {
                dropping.open();
                go_on.wait();
            });
            move || _ = &blocks
        });
        let calls = limit("propagators::dropping", LONG);
        let mut call = Box::pin(
            calls
                .on_worker()
                .outcome_async(async |_| Ok::<_, TimeoutError>(())),
        );
        let mut context = Context::from_waker(Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        drop(handle);
        dropping.wait();
        assert!(call.as_mut().poll(&mut context).is_pending());
        go_on.open();
        assert_eq!(block_on(call).status(), CallStatus::Ok);
    });
}

#[test]
fn a_removed_propagator_is_kept_only_by_started_calls() {
    in_own_process(|| {
        LABEL.set("the caller's");
        for way in ABANDONING {
            let handle = Mutex::new(Some(propagate_label()));
            let seen = way.run(&limit("propagators::removes", LONG), move |_| {
                drop(handle.lock().unwrap().take());
                Ok::<_, TimeoutError>((LABEL.get(), found(Way::SyncWorker)))
            });
            assert_eq!(
                seen.success(),
                Some(("the caller's", "no label")),
                "{way:?}"
            );
            let drops = Drops::default();
            let held = drops.value();
            let handle = add_propagator(move || {
                let _ = &held;
                || ()
            });
            works(way);
            drop(handle);
            assert_eq!(drops.count(), 1, "{way:?}: the propagator itself");
        }
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Capture,
    Enter,
    Leave,
    Drop,
}

const PLACES: [Place; 4] = [Place::Capture, Place::Enter, Place::Leave, Place::Drop];

/// A propagator that runs user code in one place.
fn acting(place: Place, act: Act) -> Registration {
    let act_in = move |other| if place == other { act } else { Act::Nothing };
    add_propagator(move || {
        act_in(Place::Capture).act();
        let at_drop = OnDrop(move || act_in(Place::Drop).act());
        move || {
            let _ = &at_drop;
            act_in(Place::Enter).act();
            OnDrop(move || act_in(Place::Leave).act())
        }
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Answers,
    Fails,
    Panics,
    Late,
}

/// Makes a call, and asserts that all other propagators work.
fn assert_propagated(way: Way, ends: Ends, why: &str) {
    let recorder = record("propagators::ends");
    let gate = Gate::new();
    let held = gate.clone();
    let own_limit = if ends == Ends::Late { short() } else { LONG };
    let outcome = caught(|| {
        way.run(&limit("propagators::ends", own_limit), move |_| {
            let label = LABEL.get();
            match ends {
                Ends::Answers => {}
                Ends::Fails => return Err(label),
                Ends::Panics => panic!("{WANTED}"),
                Ends::Late => held.wait(),
            }
            Ok(label)
        })
    });
    gate.open();
    match (ends, outcome) {
        (Ends::Answers, Some(Outcome::Success("the caller's")))
        | (Ends::Fails, Some(Outcome::Failure("the caller's")))
        | (Ends::Panics, None) => {
            assert_eq!(recorder.wait_for(1).len(), 1, "{why}");
        }
        (Ends::Late, Some(Outcome::TimedOut(_))) => {
            let expected = [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded];
            assert_eq!(recorder.wait_for(2), expected, "{why}");
        }
        (_, outcome) => panic!("{why}: {outcome:?}"),
    }
}

// Fails if a panic in any of these places is not caught.
#[test]
fn a_panicking_propagator_changes_no_outcome_and_no_other_propagator() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let handle = propagate_label();
        for place in PLACES {
            let acting = [acting(place, Act::Panics), acting(place, Act::Panics)];
            let log = Log::default();
            let last = log.propagate("last");
            for way in ABANDONING {
                for ends in [Ends::Answers, Ends::Fails, Ends::Panics, Ends::Late] {
                    assert_propagated(way, ends, &format!("{place:?}, {way:?}, {ends:?}"));
                }
            }
            drop((acting, last));
            assert_eq!(log.count("capture last"), 12, "{place:?}");
            support::eventually("every value is left", || {
                let captures = log.count("drop last");
                captures == 12 && log.count("enter last") == log.count("leave last")
            });
        }
        drop(handle);
        for way in ABANDONING {
            assert_eq!(found(way), "no label", "{way:?}: a label remains");
        }
    });
}

/// Propagators must not be called for their own calls without end, nor under a lock.
// Fails if a propagator is called for calls that it makes itself.
#[test]
fn a_propagator_may_make_calls_and_be_added_or_removed() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let _handle = propagate_label();
        for place in PLACES {
            let _acting = acting(place, Act::ReEnters);
            let _comes_and_goes = add_propagator(|| {
                drop(propagate_label());
                || drop(propagate_label())
            });
            for way in ABANDONING {
                assert_propagated(way, Ends::Answers, &format!("{place:?}, {way:?}"));
            }
        }
    });
}

/// A call used to see values that the previous call on its worker had left.
#[test]
fn a_call_sees_no_values_of_the_previous_call_on_its_worker() {
    in_own_process(|| {
        LABEL.set("the caller's");
        Settings {
            cap: 1,
            ..Settings::current()
        }
        .apply();
        for ends in [Ends::Answers, Ends::Fails, Ends::Panics, Ends::Late] {
            for place in PLACES {
                let handles = (propagate_label(), acting(place, Act::Panics));
                assert_propagated(Way::SyncWorker, ends, &format!("{place:?}, {ends:?}"));
                drop(handles);
                assert_eq!(found(Way::SyncWorker), "no label", "{place:?}, {ends:?}");
            }
        }
    });
}

/// A withdrawn operation is never entered, and its captured values are dropped.
#[test]
fn values_captured_for_a_call_that_never_starts_are_dropped() {
    in_own_process(|| {
        LABEL.set("the caller's");
        let log = Log::default();
        let _handle = log.propagate("it");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        {
            let _inside = runtime.enter();
            let mut call = Box::pin(
                limit("propagators::withdrawn", LONG)
                    .as_task()
                    .outcome_async(|_| async { Ok::<_, TimeoutError>(()) }),
            );
            assert!(support::poll_once(&mut call, &Gate::new()).is_pending());
        }
        drop(runtime);
        assert_eq!(log.take(), ["capture it", "drop it"]);
    });
}
