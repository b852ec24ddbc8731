//! Abandoned operations are listed by name and age, counted, awaited by `drain`, and limited.

use crate::own_process::in_own_process;
use crate::support;
use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, OnDrop, SOON, Way, abandon, assert_timed_out, block_on, limit,
    poll_once, record, short,
};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CallStatus, Cause, EventKind, Outcome, TimeoutError, add_listener};

#[test]
fn abandoned_operations_are_listed_until_they_have_ended() {
    in_own_process(|| {
        for way in ABANDONING {
            let recorder = record("abandoned_operations::listed");
            let gate = abandon(way, "abandoned_operations::listed");
            let left = workers::abandoned();
            let [left] = left.as_slice() else {
                panic!("{way:?}: {left:?}");
            };
            assert_eq!(left.name, "abandoned_operations::listed");
            assert_eq!(left.call, recorder.events()[0].call, "{way:?}");
            assert_eq!(left.worker, recorder.events()[0].worker, "{way:?}");
            let on_worker = usize::from(way != Way::AsyncTask);
            assert_eq!(usize::from(left.worker.is_some()), on_worker, "{way:?}");
            let stats = workers::stats();
            assert_eq!(stats.abandoned, on_worker, "{way:?}");
            assert!(stats.busy >= stats.abandoned && stats.live >= stats.busy);
            thread::sleep(Duration::from_millis(5));
            assert!(workers::abandoned()[0].age >= Duration::from_millis(5));

            assert_eq!(workers::drain(Duration::from_millis(5)), 1, "{way:?}");
            gate.open();
            assert_eq!(workers::drain(SOON), 0, "{way:?}");
            assert!(workers::abandoned().is_empty(), "{way:?}");
            assert_eq!(workers::stats().abandoned, 0, "{way:?}");
            assert_eq!(recorder.wait_for(2).len(), 2, "{way:?}");
        }
    });
}

/// An operation stayed in the list while its late event was emitted, so a retry from a listener was
/// refused.
// Fails if `drain` does not wait for late events, or if the event comes before the removal.
#[test]
fn an_operation_is_removed_before_its_late_event_and_drain_returns_after_it() {
    in_own_process(|| {
        const NAME: &str = "abandoned_operations::late_event";

        for way in ABANDONING {
            let (entered, proceed) = (Gate::new(), Gate::new());
            let (in_listener, held) = (entered.clone(), proceed.clone());
            let _listener = add_listener(move |event| {
                if event.name == NAME && support::is_late(&event.kind) {
                    in_listener.open();
                    held.wait();
                }
            });
            abandon(way, NAME).open();
            entered.wait();
            assert_eq!(workers::abandoned(), [], "{way:?}");
            assert_eq!(workers::drain(Duration::ZERO), 1, "{way:?}");
            proceed.open();
            assert_eq!(workers::drain(SOON), 0, "{way:?}");
        }
    });
}

/// In async code, only the blocking `drain` was available, which stops a current-thread runtime.
#[test]
fn drain_async_waits_for_abandoned_operations_on_any_executor() {
    in_own_process(|| {
        assert_eq!(block_on(workers::drain_async(SOON)), 0);
        for way in ABANDONING {
            let recorder = record("abandoned_operations::drain_async");
            let gate = abandon(way, "abandoned_operations::drain_async");
            assert_eq!(block_on(workers::drain_async(Duration::ZERO)), 1, "{way:?}");
            let brief = Duration::from_millis(5);
            assert_eq!(block_on(workers::drain_async(brief)), 1, "{way:?}");

            let woken = Gate::new();
            let mut drain = pin!(workers::drain_async(3 * SOON));
            assert!(poll_once(&mut drain, &woken).is_pending(), "{way:?}");
            {
                let mut dropped = pin!(workers::drain_async(3 * SOON));
                assert!(poll_once(&mut dropped, &Gate::new()).is_pending());
            }
            let elsewhere = thread::spawn(|| block_on(workers::drain_async(3 * SOON)));
            gate.open();
            woken.wait();
            assert_eq!(block_on(drain), 0, "{way:?}");
            assert_eq!(elsewhere.join().unwrap(), 0, "{way:?}");
            assert_eq!(recorder.events().len(), 2, "{way:?}");
        }
    });
}

#[test]
fn drain_async_lets_abandoned_tasks_of_its_own_runtime_end() {
    in_own_process(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let running = runtime.block_on(async {
            let outcome = limit("abandoned_operations::own_runtime", short())
                .as_task()
                .outcome_async(async |_| {
                    tokio::time::sleep(2 * support::short_limit()).await;
                    Ok::<_, TimeoutError>(7)
                })
                .await;
            assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
            workers::drain_async(3 * SOON).await
        });
        assert_eq!(running, 0);
    });
}

#[test]
fn inline_operations_are_never_abandoned() {
    in_own_process(|| {
        for way in [Way::SyncInline, Way::AsyncInline] {
            let outcome = way.run(&limit("abandoned_operations::in_place", short()), |token| {
                support::until_cancelled(&token)
            });
            assert_timed_out(way, &outcome);
            assert_eq!(workers::drain(Duration::ZERO), 0, "{way:?}");
        }
    });
}

#[test]
fn too_many_abandoned_operations_of_one_name_refuse_new_calls_of_it() {
    in_own_process(|| {
        for left_way in ABANDONING {
            let gates = [(); 2].map(|()| abandon(left_way, "abandoned_operations::many"));
            for way in EVERY_WAY {
                let recorder = record("abandoned_operations::many");
                let timeout = limit("abandoned_operations::many", 60_000);
                let run = |most| {
                    way.run(&timeout.clone().with_max_abandoned(most), |_| {
                        Ok::<_, TimeoutError>(7)
                    })
                };
                let refused = run(2);
                assert!(
                    matches!(&refused, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker),
                    "{way:?}: {refused:?}"
                );
                assert_eq!(
                    recorder.kinds(),
                    [EventKind::NotStarted(Cause::NoWorker)],
                    "{way:?}"
                );
                assert_eq!(run(3).status(), CallStatus::Ok, "{way:?}");
                let other = limit("abandoned_operations::other", 60_000).with_max_abandoned(1);
                let other = way.run(&other, |_| Ok::<_, TimeoutError>(7));
                assert_eq!(other.status(), CallStatus::Ok, "{way:?}");
            }
            gates.iter().for_each(Gate::open);
            assert_eq!(workers::drain(SOON), 0);
            let again = limit("abandoned_operations::many", 60_000).with_max_abandoned(1);
            assert!(again.outcome(|_| Ok::<_, TimeoutError>(7)).status() == CallStatus::Ok);
        }
    });
}

fn panics_when_dropped() -> OnDrop<impl FnMut() + Send + Sync + use<>> {
    OnDrop(|| assert!(thread::panicking(), "a destructor's own panic"))
}

/// The operation's thread is the last holder of its call, and of user values in it.
#[test]
fn a_panicking_destructor_in_a_call_kills_no_worker() {
    in_own_process(|| {
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            for in_token in [true, false] {
                let (gate, ended) = (Gate::new(), Gate::new());
                let (held, ends) = (gate.clone(), ended.clone());
                let mut timeout =
                    limit("abandoned_operations::keeps", short()).cancel_on_timeout(false);
                let recorder = record("abandoned_operations::keeps");
                let kept = (!in_token).then(panics_when_dropped);
                if let Some(kept) = kept {
                    timeout = timeout.with_listener(move |_| {
                        let _ = &kept;
                    });
                }
                let outcome = way.run(&timeout, move |token| {
                    if in_token {
                        let kept = panics_when_dropped();
                        token.on_cancel(move || drop(kept)).forget();
                    }
                    drop(token);
                    held.wait();
                    ends.open();
                    Ok::<_, TimeoutError>(7)
                });
                assert_timed_out(way, &outcome);
                drop(timeout);
                gate.open();
                ended.wait();
                recorder.wait_for(2);
                support::eventually("the worker is free", || workers::stats().busy == 0);
            }
        }
    });
}

annotated! {
    mod at_most_one, [name = "abandoned_operations::attribute", secs = 60, max_abandoned = 1], () -> Result<u32, TimeoutError> { Ok(7) }
}

/// A worker used to count as free while it still dropped its call: a call made by a destructor
/// could be given to the same worker, and wait for itself.
#[test]
fn a_value_dropped_last_by_a_worker_may_make_calls() {
    in_own_process(|| {
        let (sender, results) = mpsc::channel();
        let calls = OnDrop(move || {
            let inner = limit("abandoned_operations::inner", 600_000);
            let outcome = inner.outcome(|_| Ok::<_, TimeoutError>(7));
            sender.send(outcome.success()).unwrap();
        });
        let outer = limit("abandoned_operations::outer", short()).with_listener(move |_| {
            let _ = &calls;
        });
        let gate = Gate::new();
        let held = gate.clone();
        let outcome = outer.outcome(move |_| {
            held.wait();
            Ok::<_, TimeoutError>(())
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
        drop(outer);
        gate.open();
        assert_eq!(results.recv_timeout(SOON), Ok(Some(7)));
    });
}

#[test]
fn the_attribute_limits_abandoned_operations() {
    in_own_process(|| {
        let gate = abandon(Way::SyncWorker, "abandoned_operations::attribute");
        for way in EVERY_WAY {
            let error = at_most_one::call(way).unwrap_err();
            assert_eq!(error.cause(), Cause::NoWorker, "{way:?}");
        }
        gate.open();
        assert_eq!(workers::drain(SOON), 0);
        for way in EVERY_WAY {
            assert!(at_most_one::call(way).is_ok(), "{way:?}");
        }
    });
}

#[test]
fn the_default_limit_of_abandoned_operations_is_half_of_the_cap() {
    in_own_process(|| {
        Settings {
            cap: 4,
            ..Settings::current()
        }
        .apply();
        let gates = [(); 2].map(|()| abandon(Way::SyncWorker, "abandoned_operations::half"));
        let timeout = limit("abandoned_operations::half", 60_000);
        let refused = timeout.outcome(|_| Ok::<_, TimeoutError>(7));
        assert!(
            matches!(&refused, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker),
            "{refused:?}"
        );
        gates.iter().for_each(Gate::open);
        assert_eq!(workers::drain(SOON), 0);
    });
}
