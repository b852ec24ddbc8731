//! `interrupt_with`: a cancellation stops blocking work, and no stop reaches the next work.

use crate::own_process::in_own_process;
use crate::{background, concurrent, panics, support};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use concurrent::run_concurrently;
use support::{
    Drops, EVERY_WAY, Gate, SOON, Way, assert_timed_out, eventually, limit, record, short,
};
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome, TimeoutError};

const LONG: u64 = 60_000;

/// Counts the stops, and ends the work at one of them. The stops before are lost.
struct Stops {
    count: Arc<AtomicUsize>,
    effective: usize,
    ends: Sender<()>,
}

impl Stops {
    /// The stops, and the work that the stop number `effective` ends.
    fn of_work(effective: usize) -> (Self, Receiver<()>) {
        let (ends, work) = channel();
        let stops = Self {
            count: Arc::default(),
            effective,
            ends,
        };
        (stops, work)
    }

    /// A function for `interrupt_with`. The counter has two owners for as long as it exists.
    fn function(&self) -> impl FnMut() + Send + 'static + use<> {
        let (count, effective) = (Arc::clone(&self.count), self.effective);
        let ends = self.ends.clone();
        move || {
            if count.fetch_add(1, Ordering::SeqCst) + 1 >= effective {
                // The work has ended already if this stop comes after the effective one.
                ends.send(()).ok();
            }
        }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Asserts that no stop can run any more: the function is gone.
    #[track_caller]
    fn assert_gone(&self) {
        assert_eq!(
            Arc::strong_count(&self.count),
            1,
            "the function still exists"
        );
    }
}

/// Blocking work that ends when it is stopped.
fn until_stopped(work: &Receiver<()>) -> u32 {
    work.recv_timeout(SOON).expect("the work is stopped");
    7
}

#[test]
fn work_without_a_cancellation_returns_its_value_and_is_not_stopped() {
    let (token, (stops, _work)) = (CancelToken::new(), Stops::of_work(1));
    let result = token.interrupt_with(stops.function(), || 7);
    assert_eq!(result, Ok(7));
    stops.assert_gone();
    token.cancel();
    assert_eq!(stops.count(), 0);
}

#[test]
fn with_a_cancelled_token_neither_the_work_nor_a_stop_runs() {
    let (token, (stops, _work)) = (CancelToken::new(), Stops::of_work(1));
    token.cancel_with("shutdown");
    let result = token.interrupt_with(stops.function(), || panic!("the work ran"));
    assert_eq!(result, token.check());
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(stops.count(), 0);
    stops.assert_gone();
}

/// The cancel request of a database is lost if no statement runs at that moment.
#[test]
fn a_stop_that_is_lost_is_repeated() {
    // The pauses are 1, 2, 4, 8, 16, 32 and 32 ms.
    for effective in [1, 2, 8] {
        let (token, (stops, work)) = (CancelToken::new(), Stops::of_work(effective));
        let result = token.interrupt_with(stops.function(), || {
            token.cancel();
            until_stopped(&work)
        });
        assert!(result.unwrap_err().is_cancelled());
        assert!(stops.count() >= effective, "{} stops", stops.count());
        stops.assert_gone();
    }
}

#[test]
fn a_stop_that_panics_is_repeated() {
    panics::record_panics();
    let (token, (stops, work)) = (CancelToken::new(), Stops::of_work(3));
    let mut function = stops.function();
    let count = Arc::clone(&stops.count);
    let stop = move || {
        function();
        assert!(count.load(Ordering::SeqCst) >= 3, "wanted: a stop's panic");
    };
    let result = token.interrupt_with(stop, || {
        token.cancel();
        until_stopped(&work)
    });
    assert!(result.unwrap_err().is_cancelled());
    stops.assert_gone();
}

#[test]
fn the_value_of_work_that_ends_by_itself_after_a_cancellation_is_dropped() {
    let (token, (stops, _work)) = (CancelToken::new(), Stops::of_work(usize::MAX));
    let drops = Drops::default();
    let result = token.interrupt_with(stops.function(), || {
        token.cancel();
        eventually("the stop has been repeated", || stops.count() >= 3);
        drops.value()
    });
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(drops.count(), 1);
    stops.assert_gone();
}

/// Stops some work and goes on for a while, and notices whether the work has returned meanwhile.
struct SlowStop {
    has_begun: Gate,
    has_ended: Arc<AtomicBool>,
}

impl SlowStop {
    fn new() -> Self {
        Self {
            has_begun: Gate::new(),
            has_ended: Arc::default(),
        }
    }

    fn function(&self) -> impl FnMut() + Send + 'static + use<> {
        let (has_begun, has_ended) = (self.has_begun.clone(), Arc::clone(&self.has_ended));
        move || {
            has_begun.open();
            // Without a wait for the stop, the work would return during this.
            thread::sleep(Duration::from_millis(200));
            has_ended.store(true, Ordering::SeqCst);
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }
}

#[test]
fn a_running_stop_ends_before_the_error_is_returned() {
    let (token, slow) = (CancelToken::new(), SlowStop::new());
    let result = token.interrupt_with(slow.function(), || {
        token.cancel();
        slow.has_begun.wait();
    });
    assert!(slow.has_ended());
    assert!(result.unwrap_err().is_cancelled());
}

#[test]
fn a_panic_of_the_work_passes_through_after_a_running_stop() {
    panics::record_panics();
    let (token, slow) = (CancelToken::new(), SlowStop::new());
    let function = slow.function();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        token.interrupt_with(function, || {
            token.cancel();
            slow.has_begun.wait();
            panic!("wanted: the panic of the work");
        })
    }));
    assert!(slow.has_ended());
    let payload = caught.unwrap_err();
    assert_eq!(
        payload.downcast_ref::<&str>(),
        Some(&"wanted: the panic of the work")
    );
    // Without a cancellation there is no stop to wait for.
    let (alive, (stops, _work)) = (CancelToken::new(), Stops::of_work(1));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        alive.interrupt_with(stops.function(), || panic!("wanted: the panic of the work"))
    }));
    assert!(caught.is_err());
    stops.assert_gone();
}

/// A stop may take a lock that the canceller holds, or block.
#[test]
fn stops_run_on_background_threads_and_do_not_delay_the_cancel() {
    let (token, (stops, work)) = (CancelToken::new(), Stops::of_work(1));
    let (sender, threads) = channel();
    let release = Gate::new();
    let (mut function, held) = (stops.function(), release.clone());
    let stop = move || {
        sender
            .send(thread::current().name().map(str::to_owned))
            .ok();
        held.wait();
        function();
    };
    let cancels = token.clone();
    let result = token.interrupt_with(stop, || {
        support::before_it_opens(&release, move || cancels.cancel());
        until_stopped(&work)
    });
    assert!(result.unwrap_err().is_cancelled());
    assert_eq!(
        threads.recv().unwrap().as_deref(),
        Some("timeout-background")
    );
}

#[test]
fn nested_interruptions_are_both_stopped() {
    let token = CancelToken::new();
    let (outer, at_outer) = Stops::of_work(2);
    let (inner, at_inner) = Stops::of_work(2);
    let result = token.interrupt_with(outer.function(), || {
        let result = token.interrupt_with(inner.function(), || {
            token.cancel();
            until_stopped(&at_inner)
        });
        inner.assert_gone();
        until_stopped(&at_outer);
        result
    });
    assert!(result.unwrap_err().is_cancelled());
    assert!(inner.count() >= 2 && outer.count() >= 2);
    outer.assert_gone();
}

#[test]
fn a_cancelled_child_stops_only_its_own_work() {
    let token = CancelToken::new();
    let child = token.child();
    let (outer, _at_outer) = Stops::of_work(1);
    let (inner, at_inner) = Stops::of_work(1);
    let result = token.interrupt_with(outer.function(), || {
        child.interrupt_with(inner.function(), || {
            child.cancel();
            until_stopped(&at_inner)
        })
    });
    assert!(result.unwrap().unwrap_err().is_cancelled());
    assert_eq!(outer.count(), 0);
}

/// One work after the other uses the same connection.
// Fails if a stop runs after its work has returned, or if work that was stopped returns its value.
#[test]
fn work_that_ends_at_the_cancellation_has_its_value_or_an_error_and_no_late_stop() {
    const WORKS: usize = 5000;

    let (tokens, cancels) = channel::<CancelToken>();
    let canceller = thread::spawn(move || cancels.into_iter().for_each(|token| token.cancel()));
    let (user, late) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let mut stopped = 0;
    for work in 0..WORKS {
        let (token, stops) = (CancelToken::new(), Arc::<AtomicUsize>::default());
        user.store(work, Ordering::SeqCst);
        let stop = {
            let (user, late, stops) = (Arc::clone(&user), Arc::clone(&late), Arc::clone(&stops));
            move || {
                stops.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                late.fetch_or(user.load(Ordering::SeqCst) != work, Ordering::SeqCst);
            }
        };
        tokens.send(token.clone()).unwrap();
        let result = token.interrupt_with(stop, || {
            (0..work % 1000).for_each(|_| std::hint::spin_loop());
            // So that the other thread does not fall behind.
            while work % 50 == 0 && !token.is_cancelled() {
                thread::yield_now();
            }
            work
        });
        match result {
            Ok(value) => assert_eq!((value, stops.load(Ordering::SeqCst)), (work, 0)),
            Err(error) => {
                assert!(error.is_cancelled());
                stopped += 1;
            }
        }
    }
    drop(tokens);
    canceller.join().unwrap();
    assert!(stopped >= WORKS / 50);
    assert!(!late.load(Ordering::SeqCst), "a stop ran after its work");
}

/// The limit of a call that runs inline is watched for its interruptions, too.
#[test]
fn the_deadline_of_a_call_stops_its_work_wherever_it_runs() {
    for way in EVERY_WAY {
        let (stops, work) = Stops::of_work(3);
        let function = stops.function();
        let (sender, ended) = channel();
        let outcome = way.run(&limit("interrupted_work::limit", short()), move |token| {
            let result = token.interrupt_with(function, || until_stopped(&work));
            sender.send(result.clone()).unwrap();
            result
        });
        assert_timed_out(way, &outcome);
        let error = ended.recv_timeout(SOON).unwrap().unwrap_err();
        assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
        assert!(stops.count() >= 3, "{way:?}");
        stops.assert_gone();
    }
}

#[test]
fn an_abandoned_operation_that_is_interrupted_ends() {
    let recorder = record("interrupted_work::abandoned");
    for way in [Way::SyncWorker, Way::AsyncWorker] {
        let (stops, work) = Stops::of_work(2);
        let function = stops.function();
        let outcome = way.run(
            &limit("interrupted_work::abandoned", short()),
            move |token| token.interrupt_with(function, || until_stopped(&work)),
        );
        assert_timed_out(way, &outcome);
        eventually("the work has been stopped", || {
            Arc::strong_count(&stops.count) == 1
        });
    }
    // An outcome and a late event each.
    recorder.wait_for(4);
}

#[test]
fn an_upstream_token_stops_the_work_of_a_call() {
    for way in EVERY_WAY {
        let (stops, work) = Stops::of_work(2);
        let function = stops.function();
        let (upstream, started) = (CancelToken::new(), Gate::new());
        let (cancels, under_way) = (upstream.clone(), started.clone());
        let canceller = thread::spawn(move || {
            under_way.wait();
            cancels.cancel_with("shutdown");
        });
        let context = CallContext::detached().with_token(&upstream);
        let outcome = context.run(|| {
            way.run(&limit("interrupted_work::upstream", LONG), move |token| {
                token.interrupt_with(function, || {
                    started.open();
                    until_stopped(&work)
                })
            })
        });
        canceller.join().unwrap();
        let Outcome::Cancelled(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(std::error::Error::source(&error).is_some(), "{way:?}");
        eventually("the work has been stopped", || {
            Arc::strong_count(&stops.count) == 1
        });
    }
}

/// A pause between two stops must hold no thread.
#[test]
fn many_interruptions_need_few_threads() {
    in_own_process(|| {
        const WORKS: usize = 1000;

        let root = CancelToken::new();
        let started = Barrier::new(WORKS + 1);
        let running = AtomicUsize::new(WORKS);
        let mut most = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                run_concurrently(WORKS, WORKS, |place| {
                    let (stops, work) = Stops::of_work(1 + place % 5);
                    let result: Result<u32, TimeoutError> =
                        root.child().interrupt_with(stops.function(), || {
                            started.wait();
                            until_stopped(&work)
                        });
                    running.fetch_sub(1, Ordering::SeqCst);
                    assert!(result.unwrap_err().is_cancelled());
                    stops.assert_gone();
                });
            });
            started.wait();
            root.cancel();
            while running.load(Ordering::SeqCst) > 0 {
                most = most.max(background::threads());
            }
        });
        assert!(most <= background::MOST, "{most} threads");
        assert!(most > 0 || !cfg!(target_os = "linux"));
    });
}
