//! Callbacks and destructors run without delaying a deadline when no worker is free for them.

use crate::own_process::in_own_process;
use crate::support;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use support::{
    Gate, OnDrop, Way, block_on, eventually, limit, occupy_worker, paused_runtime, poll_once,
    runtime, short,
};
use timeout_runtime::workers::Settings;
use timeout_runtime::{CallStatus, Outcome, TimeoutError, add_listener, timeout};

/// Callbacks without a worker used to run on the timer thread, and delayed all deadlines.
#[test]
fn a_blocking_callback_delays_no_deadline() {
    in_own_process(|| {
        Settings {
            cap: 1,
            ..Settings::current()
        }
        .apply();
        let runtime = runtime();
        let _inside = runtime.enter();
        let release = Gate::new();
        let occupied = occupy_worker("without_a_worker::occupied", &release);
        let (entered, block) = (Gate::new(), release.clone());
        let is_in = entered.clone();
        let caller = runtime.spawn(
            limit("without_a_worker::blocks", short())
                .as_task()
                .outcome_async(|token| async move {
                    token
                        .on_cancel(move || {
                            is_in.open();
                            block.wait();
                        })
                        .forget();
                    pending::<Result<(), TimeoutError>>().await
                }),
        );
        entered.wait();
        let (sender, ended) = mpsc::channel();
        let beside = std::thread::spawn(move || {
            let call = Way::AsyncInline.start(&limit("without_a_worker::beside", short()), |_| {
                pending::<Result<(), TimeoutError>>()
            });
            sender.send(block_on(call)).unwrap();
        });
        let outcome = ended.recv_timeout(support::SOON / 2);
        release.open();
        beside.join().unwrap();
        assert!(matches!(outcome, Ok(Outcome::TimedOut(_))), "{outcome:?}");
        let blocked = block_on(caller).unwrap();
        assert!(matches!(blocked, Outcome::TimedOut(_)), "{blocked:?}");
        assert_eq!(occupied.join().unwrap().status(), CallStatus::Ok);
    });
}

/// Paused time used to advance while the arguments of an expired call were dropped on another
/// thread, so code that waited for their drop timed out.
#[test]
fn paused_time_stands_still_while_a_queued_operation_is_dropped() {
    in_own_process(|| {
        let release = Gate::new();
        Settings {
            cap: 1,
            ..Settings::current()
        }
        .apply();
        let occupied = occupy_worker("without_a_worker::paused_occupied", &release);
        let runtime = paused_runtime();
        let (outcome, dropped) = runtime.block_on(async {
            let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
            let mut sender = Some(sender);
            let slow = OnDrop(move || {
                std::thread::sleep(Duration::from_millis(100));
                drop(sender.take());
            });
            let calls = limit("without_a_worker::paused", 1);
            let outcome = calls.on_worker().outcome_async(move |_| async move {
                let _slow = slow;
                Ok::<_, TimeoutError>(7)
            });
            let outcome = outcome.await;
            (
                outcome,
                tokio::time::timeout(Duration::from_secs(60), receiver).await,
            )
        });
        release.open();
        assert_eq!(occupied.join().unwrap().status(), CallStatus::Ok);
        assert!(matches!(outcome, Outcome::NotStarted(_)), "{outcome:?}");
        assert!(dropped.is_ok(), "virtual time has passed");
    });
}

#[timeout(name = "without_a_worker::flush", secs = 60, run = "inline")]
fn flush() -> Result<(), TimeoutError> {
    Ok(())
}

/// The destructor used to run on a thread where the listener was not muted, so the listener
/// received the events that it had caused, without end.
#[test]
fn a_listener_receives_no_events_of_queued_operations_that_it_caused() {
    in_own_process(|| {
        let release = Gate::new();
        Settings {
            cap: 1,
            ..Settings::current()
        }
        .apply();
        let occupied = occupy_worker("without_a_worker::muted_occupied", &release);
        let (dropped, count) = (Gate::new(), Arc::<AtomicUsize>::default());
        let (is_dropped, counter) = (dropped.clone(), Arc::clone(&count));
        let _listener = add_listener(move |event| {
            // Without muting, the listener would cause events without end.
            if event.name != "without_a_worker::flush"
                || counter.fetch_add(1, Ordering::SeqCst) > 20
            {
                return;
            }
            let is_dropped = is_dropped.clone();
            let flushes = OnDrop(move || {
                flush().unwrap();
                is_dropped.open();
            });
            let outcome = limit("without_a_worker::queued", 1).outcome(move |_| {
                let _flushes = &flushes;
                Ok::<_, TimeoutError>(7)
            });
            assert!(matches!(outcome, Outcome::NotStarted(_)), "{outcome:?}");
        });
        flush().unwrap();
        dropped.wait();
        release.open();
        assert_eq!(occupied.join().unwrap().status(), CallStatus::Ok);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    });
}

/// A callback whose token was cancelled ran after its registration was dropped, if it had to wait
/// for a thread.
#[test]
fn a_callback_that_waits_for_a_thread_is_taken_back() {
    in_own_process(|| {
        // More than there are threads for callbacks.
        const BLOCKED: usize = 1000;

        let release = Gate::new();
        let (sender, tokens) = mpsc::channel();
        let calls = limit("without_a_worker::taken_back", 60_000);
        let mut call = Way::AsyncInline.start(&calls, move |token| {
            sender.send(token).unwrap();
            pending::<Result<(), TimeoutError>>()
        });
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        let token = tokens.recv().unwrap();
        let (entered, left) = (Gate::new(), Arc::<AtomicUsize>::default());
        for _ in 0..BLOCKED {
            let (entered, held, left) = (entered.clone(), release.clone(), Arc::clone(&left));
            let blocks = move || {
                entered.open();
                held.wait();
                left.fetch_add(1, Ordering::SeqCst);
            };
            token.on_cancel(blocks).forget();
        }
        let ran = Gate::new();
        let runs = || {
            let ran = ran.clone();
            token.on_cancel(move || ran.open())
        };
        let (unregistered, dropped) = (runs(), runs());
        drop(call);
        entered.wait();
        let was_prevented = unregistered.unregister();
        drop(dropped);
        release.open();
        assert!(was_prevented);
        eventually("all other callbacks have run", || {
            left.load(Ordering::SeqCst) == BLOCKED
        });
        assert!(!ran.is_open());
    });
}
