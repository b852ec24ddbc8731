//! Callbacks that block, panic or unregister each other delay no call, no timer and no
//! other callback for good.

use crate::own_process::in_own_process;
use crate::{background, concurrent, panics, support};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use concurrent::{must_return, run_concurrently};
use support::{
    ASYNC, EVERY_WAY, Gate, SOON, Way, before_it_opens, block_on, eventually, limit, runtime,
    short, short_limit, until_cancelled,
};
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome, Registration, TimeoutError};

/// Number of other calls made while callbacks block.
const OTHERS: usize = 20;

/// The elapsed time of a call that ends by its limit.
fn times_out(way: Way, name: &'static str) -> Duration {
    let calls = limit(name, short());
    let outcome = match way {
        Way::SyncWorker | Way::SyncInline => way.run(&calls, |token| until_cancelled(&token)),
        // Nothing else wakes the call.
        _ => block_on(way.start(&calls, move |token| async move {
            if way == Way::AsyncInline {
                return std::future::pending().await;
            }
            token.cancelled().await;
            token.check().map(|()| 7)
        })),
    };
    // On a busy machine a worker may take the call too late, which also ends it in time.
    let (Outcome::TimedOut(error) | Outcome::NotStarted(error)) = outcome else {
        panic!("{way:?}: {outcome:?}");
    };
    assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
    error.elapsed()
}

type Kept = Arc<Mutex<Vec<Registration>>>;

/// Registers three callbacks: one that blocks until the gate opens, one that panics, and one that
/// takes those two back once the first one blocks, and sends whether that prevented them.
fn register_three(
    token: &CancelToken,
    entered: Gate,
    release: Gate,
    sent: mpsc::Sender<Vec<bool>>,
) {
    let kept = Kept::default();
    let is_in = entered.clone();
    let blocks = token.on_cancel(move || {
        is_in.open();
        release.wait();
    });
    let panics = token.on_cancel(|| panic!("wanted: a callback's panic"));
    kept.lock().unwrap().extend([blocks, panics]);
    let last = token.on_cancel(move || {
        entered.wait();
        let others = std::mem::take(&mut *kept.lock().unwrap());
        let prevented = others.into_iter().map(Registration::unregister);
        sent.send(prevented.collect()).unwrap();
    });
    last.forget();
}

/// Callbacks used to run on the timer thread, or on the caller's.
#[test]
fn slow_callbacks_of_a_deadline_delay_no_other_call() {
    panics::record_panics();
    let runtime = runtime();
    for way in EVERY_WAY {
        let (entered, release) = (Gate::new(), Gate::new());
        let (sender, taken_back) = mpsc::channel();
        let (is_in, held) = (entered.clone(), release.clone());
        let outcome = way.run(&limit("slow_callbacks::first", short()), move |token| {
            register_three(&token, is_in, held, sender);
            until_cancelled(&token)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.elapsed() < SOON / 2, "{way:?}: {error}");
        entered.wait();
        run_concurrently(OTHERS, OTHERS, |place| {
            let _inside = runtime.enter();
            let other = EVERY_WAY[place % EVERY_WAY.len()];
            let took = times_out(other, "slow_callbacks::other");
            assert!(took >= short_limit(), "{other:?}: {took:?}");
            assert!(took < SOON / 2, "{other:?}: {took:?}");
        });
        // The third callback runs despite the panic and the blocked callback.
        let prevented = taken_back.recv_timeout(SOON).unwrap();
        assert!(
            !prevented[0],
            "{way:?}: a callback that runs was taken back"
        );
        release.open();
    }
    // The timer thread still works.
    let _inside = runtime.enter();
    for way in ASYNC {
        assert!(
            times_out(way, "slow_callbacks::after") < SOON / 2,
            "{way:?}"
        );
    }
}

/// `cancel` used to run the callbacks itself, and returned after the last one. While a callback
/// runs, every reader must see the token as cancelled.
#[test]
fn cancel_returns_while_callbacks_still_block() {
    panics::record_panics();
    for way in EVERY_WAY {
        let token = CancelToken::new();
        let (entered, release) = (Gate::new(), Gate::new());
        let (sender, taken_back) = mpsc::channel();
        register_three(&token, entered.clone(), release.clone(), sender);
        let (outcome, cause) = before_it_opens(&release, move || {
            let started = Gate::new();
            let (under_way, cancels) = (started.clone(), token.clone());
            let canceller = thread::spawn(move || {
                under_way.wait();
                cancels.cancel();
            });
            let context = CallContext::detached().with_token(&token);
            let outcome = context.run(|| {
                way.run(&limit("slow_callbacks::cancelled", 60_000), move |token| {
                    started.open();
                    until_cancelled(&token)
                })
            });
            canceller.join().unwrap();
            entered.wait();
            // A second cancel does not wait for the callbacks of the first one either.
            token.cancel();
            (outcome, token.child().cause())
        });
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
        assert_eq!(cause, Some(Cause::Cancelled), "{way:?}");
        let prevented = taken_back.recv_timeout(SOON).unwrap();
        assert!(
            !prevented[0],
            "{way:?}: a callback that runs was taken back"
        );
    }
}

/// A lock used to be held while callbacks ran: two callbacks that unregister each other deadlocked.
#[test]
fn two_running_callbacks_may_unregister_each_other() {
    must_return(|| {
        let tokens = [CancelToken::new(), CancelToken::new()];
        let both_run = Arc::new(Barrier::new(2));
        let kept: [Kept; 2] = Default::default();
        let (sender, prevented) = mpsc::channel();
        for (place, token) in tokens.iter().enumerate() {
            let others = Arc::clone(&kept[1 - place]);
            let (both_run, sender) = (Arc::clone(&both_run), sender.clone());
            let registration = token.on_cancel(move || {
                both_run.wait();
                let other = others.lock().unwrap().pop().unwrap();
                sender.send(other.unregister()).unwrap();
            });
            kept[place].lock().unwrap().push(registration);
        }
        thread::scope(|scope| {
            for token in &tokens {
                scope.spawn(|| token.cancel());
            }
        });
        drop(sender);
        assert_eq!(prevented.into_iter().collect::<Vec<_>>(), [false; 2]);
    });
}

/// Guards against a callback that waits for itself or for a later callback of its token, and
/// against one that runs although it was taken back.
#[test]
fn callbacks_of_one_token_may_unregister_each_other_and_themselves() {
    for by_deadline in [false, true] {
        let prevented = must_return(move || {
            let (sender, prevented) = mpsc::channel();
            let (kept, ran) = (Kept::default(), Arc::<AtomicUsize>::default());
            let register = |token: &CancelToken| {
                for _ in 0..3 {
                    let (kept_too, sender) = (Arc::clone(&kept), sender.clone());
                    let runs = Arc::clone(&ran);
                    let registration = token.on_cancel(move || {
                        runs.fetch_add(1, Ordering::SeqCst);
                        let all = std::mem::take(&mut *kept_too.lock().unwrap());
                        for one in all {
                            sender.send(one.unregister()).unwrap();
                        }
                    });
                    kept.lock().unwrap().push(registration);
                }
            };
            if by_deadline {
                let outcome = limit("slow_callbacks::each_other", short())
                    .inline()
                    .outcome(|token| {
                        register(&token);
                        until_cancelled(&token)
                    });
                assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
            } else {
                let token = CancelToken::new();
                register(&token);
                token.cancel();
            }
            let prevented = [(); 3].map(|()| prevented.recv_timeout(SOON).unwrap());
            let taken_back = prevented.into_iter().filter(|&prevented| prevented).count();
            eventually("each callback runs or is taken back", || {
                ran.load(Ordering::SeqCst) + taken_back == 3
            });
            prevented
        });
        assert!(prevented.contains(&false), "a callback took itself back");
    }
}

/// Callbacks that block take their own threads out of the bounded number, and no other callback.
#[test]
fn three_callbacks_of_many_that_block_delay_neither_the_cancel_nor_the_others() {
    in_own_process(|| {
        const CALLBACKS: usize = 10_000;
        const BLOCKED: usize = 3;

        let (token, release) = (CancelToken::new(), Gate::new());
        let ran = Arc::<AtomicUsize>::default();
        for place in 0..CALLBACKS {
            let (held, runs) = (release.clone(), Arc::clone(&ran));
            let callback = move || {
                if place < BLOCKED {
                    held.wait();
                }
                runs.fetch_add(1, Ordering::SeqCst);
            };
            token.on_cancel(callback).forget();
        }
        let count = Arc::clone(&ran);
        let most = before_it_opens(&release, move || {
            token.cancel();
            let mut most = background::threads();
            while count.load(Ordering::SeqCst) < CALLBACKS - BLOCKED {
                most = most.max(background::threads());
            }
            most
        });
        assert!(most <= background::MOST, "{most} threads");
        eventually("the blocked callbacks have run", || {
            ran.load(Ordering::SeqCst) == CALLBACKS
        });
    });
}

/// A blocked callback must not occupy the worker of the next call.
#[test]
fn callbacks_that_never_end_occupy_no_worker() {
    let release = Gate::new();
    for _ in 0..OTHERS / 2 {
        let held = release.clone();
        let outcome = limit("slow_callbacks::blocked", short()).outcome(move |token| {
            token.on_cancel(move || held.wait()).forget();
            until_cancelled(&token)
        });
        assert!(matches!(outcome, Outcome::TimedOut(_)), "{outcome:?}");
        let next = limit("slow_callbacks::next", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
        assert_eq!(next.success(), Some(7));
    }
    release.open();
}
