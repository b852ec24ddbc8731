//! `recv`, `wait_while`, `lock` and `wait_until` end at a cancellation, and lose nothing.

use crate::concurrent::must_return;
use crate::support;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use support::{EVERY_WAY, Gate, SOON, assert_timed_out, before_it_opens, eventually, limit, short};
use timeout_runtime::{CancelToken, Cause, TimeoutError};

/// Cancels `token` once the gate opens.
fn cancel_after(started: &Gate, token: &CancelToken) -> thread::JoinHandle<()> {
    let (started, token) = (started.clone(), token.clone());
    thread::spawn(move || {
        started.wait();
        token.cancel();
    })
}

/// Asserts that the wait ends at the limit of a call, wherever the call runs.
#[track_caller]
fn ends_at_the_limit(wait: fn(&CancelToken) -> Result<(), TimeoutError>) {
    for way in EVERY_WAY {
        let (sender, ended) = channel();
        let outcome = way.run(&limit("blocking_waits::limit", short()), move |token| {
            let result = wait(&token);
            sender.send(result.clone()).unwrap();
            result
        });
        assert_timed_out(way, &outcome);
        let error = ended.recv_timeout(SOON).unwrap().unwrap_err();
        assert_eq!(error.cause(), Cause::TimedOut, "{way:?}");
    }
}

#[test]
fn recv_returns_values_in_order_and_then_none() {
    let (token, (sender, values)) = (CancelToken::new(), channel());
    let sends = thread::spawn(move || (0..3).for_each(|value| sender.send(value).unwrap()));
    for value in 0..3 {
        assert_eq!(token.recv(&values), Ok(Some(value)));
    }
    assert_eq!(token.recv(&values), Ok(None));
    sends.join().unwrap();
}

/// A value that waits in the channel is not taken for a caller that gets an error.
#[test]
fn recv_with_a_cancelled_token_leaves_the_values_in_the_channel() {
    let (token, (sender, values)) = (CancelToken::new(), channel());
    sender.send(7).unwrap();
    token.cancel_with("shutdown");
    assert_eq!(token.recv(&values).map(drop), token.check());
    assert_eq!(values.try_recv(), Ok(7));
    // The cancellation comes first for a channel without senders, too.
    drop(sender);
    assert!(token.recv(&values).unwrap_err().is_cancelled());
}

#[test]
fn recv_ends_at_the_deadline() {
    ends_at_the_limit(|token| {
        let (_sender, values) = channel::<()>();
        token.recv(&values).map(drop)
    });
}

#[test]
fn recv_ends_with_the_cancellation() {
    let (token, (_sender, values)) = (CancelToken::new(), channel::<()>());
    let started = Gate::new();
    let canceller = cancel_after(&started, &token.clone());
    started.open();
    assert!(token.recv(&values).unwrap_err().is_cancelled());
    canceller.join().unwrap();
}

/// Each value is received, or is still in the channel after the cancellation.
#[test]
fn recv_loses_no_value_to_a_cancellation() {
    const ROUNDS: usize = 500;
    const VALUES: usize = 200;

    for round in 0..ROUNDS {
        let token = CancelToken::new();
        let (sender, values) = sync_channel(round % 5);
        let cancels = token.clone();
        let sends = thread::spawn(move || {
            for value in 0..VALUES {
                if value == round % VALUES {
                    cancels.cancel();
                }
                sender.send(value).unwrap();
            }
        });
        let mut received = Vec::new();
        let error = loop {
            match token.recv(&values) {
                Ok(value) => received.push(value.expect("the sender waits for the cancellation")),
                Err(error) => break error,
            }
        };
        assert!(error.is_cancelled());
        received.extend(&values);
        sends.join().unwrap();
        assert!(received.into_iter().eq(0..VALUES), "round {round}");
    }
}

#[test]
fn wait_while_returns_the_lock_once_the_condition_is_false() {
    let (token, shared) = (
        CancelToken::new(),
        Arc::new((Mutex::new(0), Condvar::new())),
    );
    let sets = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            for value in 1..=3 {
                *shared.0.lock().unwrap() = value;
                shared.1.notify_all();
            }
        })
    };
    let (lock, changed) = &*shared;
    let guard = token.wait_while(changed, lock.lock().unwrap(), |value| *value < 3);
    assert_eq!(*guard.unwrap(), 3);
    sets.join().unwrap();
}

/// A change without a notification is seen within a step.
#[test]
fn wait_while_sees_a_change_without_a_notification() {
    let (token, shared) = (
        CancelToken::new(),
        Arc::new((Mutex::new(0), Condvar::new())),
    );
    let started = Gate::new();
    let sets = {
        let (shared, started) = (Arc::clone(&shared), started.clone());
        thread::spawn(move || {
            started.wait();
            *shared.0.lock().unwrap() = 7;
        })
    };
    let (lock, changed) = &*shared;
    let guard = token.wait_while(changed, lock.lock().unwrap(), |value| {
        started.open();
        *value == 0
    });
    assert_eq!(*guard.unwrap(), 7);
    sets.join().unwrap();
}

#[test]
fn wait_while_with_a_cancelled_token_calls_no_condition_and_releases_the_lock() {
    let (token, lock, changed) = (CancelToken::new(), Mutex::new(7), Condvar::new());
    token.cancel();
    let waited = token.wait_while(&changed, lock.lock().unwrap(), |_| {
        panic!("the condition was called")
    });
    assert!(waited.unwrap_err().is_cancelled());
    assert_eq!(*lock.try_lock().unwrap(), 7);
}

#[test]
fn wait_while_ends_at_the_deadline() {
    ends_at_the_limit(|token| {
        let (lock, changed) = (Mutex::new(()), Condvar::new());
        let waited = token.wait_while(&changed, lock.lock().unwrap(), |()| true);
        waited.map(drop)
    });
}

#[test]
fn wait_while_ends_with_the_cancellation_and_releases_the_lock() {
    let (token, lock, changed) = (CancelToken::new(), Mutex::new(7), Condvar::new());
    let started = Gate::new();
    let canceller = cancel_after(&started, &token);
    let waited = token.wait_while(&changed, lock.lock().unwrap(), |_| {
        started.open();
        true
    });
    assert!(waited.unwrap_err().is_cancelled());
    canceller.join().unwrap();
    assert_eq!(*lock.try_lock().unwrap(), 7);
}

#[test]
fn wait_while_ignores_poisoning() {
    let token = CancelToken::new();
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let started = Gate::new();
    let poisons = {
        let (shared, started) = (Arc::clone(&shared), started.clone());
        thread::spawn(move || {
            started.wait();
            let mut value = shared.0.lock().unwrap();
            *value = 7;
            shared.1.notify_all();
            // Without the panic hook: its output would look like a failure.
            std::panic::resume_unwind(Box::new("the lock is poisoned"));
        })
    };
    let (lock, changed) = &*shared;
    let guard = token.wait_while(changed, lock.lock().unwrap(), |value| {
        started.open();
        *value == 0
    });
    assert_eq!(*guard.unwrap(), 7);
    assert!(poisons.join().is_err() && lock.is_poisoned());
    // A guard of a lock that was poisoned before works as well.
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let guard = token.wait_while(changed, guard, |_| false);
    assert_eq!(*guard.unwrap(), 7);
}

/// A waiting thread that is cancelled used to keep the notification to itself: the thread that
/// needed it waited for ever.
// Fails if the notification is not passed on.
#[test]
fn a_notification_that_meets_a_cancellation_wakes_another_thread() {
    const CANCELLED: usize = 8;

    for _ in 0..20 {
        let token = CancelToken::new();
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let waiting = Arc::<AtomicUsize>::default();
        let waits = (0..CANCELLED).map(|_| {
            let (shared, token) = (Arc::clone(&shared), token.clone());
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                let guard = shared.0.lock().unwrap();
                waiting.fetch_add(1, Ordering::SeqCst);
                let waited = token.wait_while(&shared.1, guard, |is_ready| !*is_ready);
                waited.map(drop)
            })
        });
        let waits: Vec<_> = waits.collect();
        let needs_it = {
            let (shared, waiting) = (Arc::clone(&shared), Arc::clone(&waiting));
            thread::spawn(move || {
                let guard = shared.0.lock().unwrap();
                waiting.fetch_add(1, Ordering::SeqCst);
                drop(shared.1.wait_while(guard, |is_ready| !*is_ready).unwrap());
            })
        };
        eventually("all threads wait", || {
            waiting.load(Ordering::SeqCst) == CANCELLED + 1
        });
        {
            let mut is_ready = shared.0.lock().unwrap();
            *is_ready = true;
            shared.1.notify_one();
            // Before any of the threads can lock the mutex.
            token.cancel();
        }
        must_return(|| needs_it.join().unwrap());
        for wait in waits {
            assert!(wait.join().unwrap().unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn lock_waits_until_the_mutex_is_free() {
    let (token, mutex) = (CancelToken::new(), Arc::new(Mutex::new(0)));
    let (held, locks) = (mutex.lock().unwrap(), Arc::clone(&mutex));
    let started = Gate::new();
    let waits = {
        let started = started.clone();
        thread::spawn(move || {
            started.open();
            *token.lock(&locks).unwrap().unwrap() += 1;
        })
    };
    started.wait();
    drop(held);
    must_return(|| waits.join().unwrap());
    assert_eq!(*mutex.lock().unwrap(), 1);
}

#[test]
fn lock_with_a_cancelled_token_locks_nothing() {
    let (token, mutex) = (CancelToken::new(), Mutex::new(7));
    token.cancel_with("shutdown");
    assert_eq!(token.lock(&mutex).map(drop), token.check());
}

/// A poisoned mutex can be locked, so a wait for it must not go on until the deadline.
// Fails if a poisoned mutex counts as a locked one.
#[test]
fn lock_returns_the_guard_of_a_poisoned_mutex_as_an_error() {
    let (token, mutex) = (CancelToken::new(), Arc::new(Mutex::new(7)));
    let poisons = Arc::clone(&mutex);
    let poisoned = thread::spawn(move || {
        let _guard = poisons.lock().unwrap();
        // Without the panic hook: its output would look like a failure.
        std::panic::resume_unwind(Box::new("the lock is poisoned"));
    });
    assert!(poisoned.join().is_err());
    let locked = must_return(move || {
        let locked = token.lock(&mutex).unwrap();
        locked.map(drop).map_err(|poisoned| *poisoned.into_inner())
    });
    assert_eq!(locked, Err(7));
}

#[test]
fn lock_ends_at_the_deadline() {
    ends_at_the_limit(|token| {
        let mutex = Mutex::new(());
        let _held = mutex.lock().unwrap();
        token.lock(&mutex).map(drop)
    });
}

#[test]
fn wait_until_waits_for_the_end_of_a_thread() {
    let (token, release) = (CancelToken::new(), Gate::new());
    let held = release.clone();
    let thread = thread::spawn(move || {
        held.wait();
        7
    });
    let started = Gate::new();
    let canceller = cancel_after(&started, &token);
    let waited = token.wait_until(|| {
        started.open();
        thread.is_finished().then_some(())
    });
    assert!(waited.unwrap_err().is_cancelled());
    canceller.join().unwrap();

    release.open();
    let token = CancelToken::new();
    token
        .wait_until(|| thread.is_finished().then_some(()))
        .unwrap();
    assert_eq!(thread.join().unwrap(), 7);
}

#[test]
fn wait_until_tries_again_until_there_is_a_value() {
    let (token, mut attempts) = (CancelToken::new(), 0);
    let value = token.wait_until(|| {
        attempts += 1;
        (attempts == 5).then_some(7)
    });
    assert_eq!((value, attempts), (Ok(7), 5));
}

#[test]
fn wait_until_with_a_cancelled_token_makes_no_attempt() {
    let token = CancelToken::new();
    token.cancel_with("shutdown");
    let waited = token.wait_until(|| -> Option<()> { panic!("an attempt was made") });
    assert_eq!(waited, token.check());
}

#[test]
fn wait_until_ends_at_the_deadline() {
    ends_at_the_limit(|token| token.wait_until(|| None));
}

/// The lock is free again when its holder releases it; a wait that was cancelled has not taken it.
#[test]
fn wait_until_ends_with_the_cancellation_while_a_lock_is_held() {
    let (token, lock) = (CancelToken::new(), Arc::new(Mutex::new(7)));
    let (held, release) = (Gate::new(), Gate::new());
    let holder = {
        let (lock, held, release) = (Arc::clone(&lock), held.clone(), release.clone());
        thread::spawn(move || {
            let _guard = lock.lock().unwrap();
            held.open();
            release.wait();
        })
    };
    held.wait();
    let (waits, started) = (Arc::clone(&lock), Gate::new());
    let canceller = cancel_after(&started, &token);
    let error = before_it_opens(&release, move || {
        let waited = token.wait_until(|| {
            started.open();
            waits.try_lock().ok().map(drop)
        });
        waited.unwrap_err()
    });
    assert!(error.is_cancelled());
    canceller.join().unwrap();
    holder.join().unwrap();
    assert_eq!(*lock.try_lock().unwrap(), 7);
}
