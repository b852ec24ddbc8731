//! `Registration::unregister_and_wait`: afterwards the function is not running and never will.

use crate::{concurrent, support};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use concurrent::must_return;
use support::{Gate, SOON, limit};
use timeout_runtime::{CancelToken, Registration, TimeoutError, add_listener, add_propagator};

/// A function that runs for a while, and notices whether it has returned.
#[derive(Clone, Default)]
struct Slow {
    has_begun: Gate,
    has_ended: Arc<AtomicBool>,
}

impl Slow {
    fn run(&self) {
        self.has_begun.open();
        // Without a wait for this function, the registration would be gone during this.
        thread::sleep(Duration::from_millis(200));
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Removes the function while it runs. Returns what `unregister_and_wait` returns.
    #[track_caller]
    fn is_awaited(&self, registration: Registration) -> bool {
        self.has_begun.wait();
        let is_removed = registration.unregister_and_wait();
        assert!(self.has_ended.load(Ordering::SeqCst));
        is_removed
    }
}

type Own = Arc<Mutex<Option<Registration>>>;

/// A call on this thread, which emits an event.
fn emit(name: &'static str) {
    let outcome = limit(name, 60_000)
        .inline()
        .outcome(|_| Ok::<_, TimeoutError>(7));
    assert!(outcome.success().is_some());
}

#[test]
fn a_running_callback_is_awaited() {
    let (token, slow) = (CancelToken::new(), Slow::default());
    let runs = slow.clone();
    let registration = token.on_cancel(move || runs.run());
    token.cancel();
    assert!(!slow.is_awaited(registration));
}

#[test]
fn a_callback_that_has_not_run_is_dropped() {
    let (token, kept) = (CancelToken::new(), Arc::new(()));
    let held = Arc::clone(&kept);
    let registration = token.on_cancel(move || panic!("called with {held:?}"));
    assert!(registration.unregister_and_wait());
    assert_eq!(Arc::strong_count(&kept), 1);
    token.cancel();
}

#[test]
fn a_callback_that_has_run_or_was_dropped_with_its_token_is_not_awaited() {
    must_return(|| {
        let (token, called) = (CancelToken::new(), Gate::new());
        let calls = called.clone();
        let registration = token.on_cancel(move || calls.open());
        let dropped = CancelToken::new().on_cancel(|| ());
        token.cancel();
        called.wait();
        let immediate = token.on_cancel(|| ());
        for registration in [registration, dropped, immediate] {
            assert!(!registration.unregister_and_wait());
        }
    });
}

/// A callback would wait for itself, also on a worker that runs on its behalf.
#[test]
fn inside_the_callback_itself_the_wait_ends_immediately() {
    for on_worker in [false, true] {
        let is_prevented = must_return(move || {
            let token = CancelToken::new();
            let own = Own::default();
            let (sender, done) = channel();
            let inside = Arc::clone(&own);
            let registration = token.on_cancel(move || {
                let unregister = move || {
                    let own = inside.lock().unwrap().take().unwrap();
                    own.unregister_and_wait()
                };
                let is_prevented = if on_worker {
                    let calls = limit("unregister_and_wait::inside", 60_000);
                    let outcome = calls.outcome(move |_| Ok::<_, TimeoutError>(unregister()));
                    outcome.success().unwrap()
                } else {
                    unregister()
                };
                sender.send(is_prevented).unwrap();
            });
            *own.lock().unwrap() = Some(registration);
            token.cancel();
            done.recv_timeout(SOON).unwrap()
        });
        assert!(!is_prevented, "on a worker: {on_worker}");
    }
}

/// Two callbacks of one token must not keep each other from running.
#[test]
fn a_callback_may_wait_for_another_one() {
    let (token, slow) = (CancelToken::new(), Slow::default());
    let runs = slow.clone();
    let other = token.on_cancel(move || runs.run());
    let (sender, done) = channel();
    let waits = slow.clone();
    let callback = move || sender.send(waits.is_awaited(other)).unwrap();
    token.on_cancel(callback).forget();
    token.cancel();
    assert_eq!(done.recv_timeout(SOON), Ok(false));
}

#[test]
fn a_running_listener_is_awaited() {
    const NAME: &str = "unregister_and_wait::listener";

    let slow = Slow::default();
    let runs = slow.clone();
    let registration = add_listener(move |event| {
        if event.name == NAME {
            runs.run();
        }
    });
    let caller = thread::spawn(|| emit(NAME));
    assert!(slow.is_awaited(registration));
    caller.join().unwrap();
}

#[test]
fn a_running_propagator_is_awaited() {
    let slow = Slow::default();
    let runs = slow.clone();
    let caller = thread::current().id();
    let registration = add_propagator(move || {
        // Other tests make calls, too.
        if thread::current().name() == Some("propagates") && thread::current().id() != caller {
            runs.run();
        }
        || ()
    });
    let call = || {
        let calls = limit("unregister_and_wait::propagator", 60_000);
        assert!(
            calls
                .outcome(|_| Ok::<_, TimeoutError>(7))
                .success()
                .is_some()
        );
    };
    let named = thread::Builder::new().name("propagates".to_owned());
    let caller = named.spawn(call).unwrap();
    assert!(slow.is_awaited(registration));
    caller.join().unwrap();
}

#[test]
fn inside_the_listener_itself_the_wait_ends_immediately() {
    const NAME: &str = "unregister_and_wait::own_listener";

    let is_removed = must_return(|| {
        let own = Own::default();
        let inside = Arc::clone(&own);
        let (sender, done) = channel();
        let registration = add_listener(move |event| {
            if event.name == NAME {
                let own = inside.lock().unwrap().take();
                let is_removed = own.unwrap().unregister_and_wait();
                sender.send(is_removed).unwrap();
            }
        });
        *own.lock().unwrap() = Some(registration);
        emit(NAME);
        done.recv_timeout(SOON).unwrap()
    });
    assert!(is_removed);
}

/// The thread of the event still has the removed listener in its list: it waited for itself.
#[test]
fn a_listener_may_remove_the_listeners_before_and_after_it() {
    const NAME: &str = "unregister_and_wait::others";

    must_return(|| {
        let events = Arc::<[AtomicUsize; 3]>::default();
        let others = Arc::<Mutex<Vec<Registration>>>::default();
        let count = |place: usize| {
            let (events, others) = (Arc::clone(&events), Arc::clone(&others));
            add_listener(move |event| {
                if event.name != NAME {
                    return;
                }
                events[place].fetch_add(1, Ordering::SeqCst);
                if place == 1 {
                    let others = std::mem::take(&mut *others.lock().unwrap());
                    assert!(others.into_iter().all(Registration::unregister_and_wait));
                }
            })
        };
        let (before, middle, after) = (count(0), count(1), count(2));
        others.lock().unwrap().extend([before, after]);
        emit(NAME);
        let events = [0, 1, 2].map(|place| events[place].load(Ordering::SeqCst));
        assert_eq!(
            events,
            [1, 1, 0],
            "the last one was removed before its turn"
        );
        drop(middle);
    });
}

#[test]
fn a_removed_listener_is_not_running_while_other_threads_make_calls() {
    const NAME: &str = "unregister_and_wait::beside_calls";

    /// Ends the other threads, also after a failed assertion.
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _done = Done(&is_done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::SeqCst) {
                    emit(NAME);
                }
            });
        }
        for _ in 0..200 {
            let is_removed = Arc::<AtomicBool>::default();
            let (called, wrong) = (Gate::new(), Gate::new());
            let (seen, is_called, is_wrong) =
                (Arc::clone(&is_removed), called.clone(), wrong.clone());
            let registration = add_listener(move |event| {
                if event.name == NAME {
                    is_called.open();
                    for _ in 0..20 {
                        thread::yield_now();
                        if seen.load(Ordering::SeqCst) {
                            is_wrong.open();
                        }
                    }
                }
            });
            called.wait();
            assert!(registration.unregister_and_wait());
            is_removed.store(true, Ordering::SeqCst);
            // A thread with an old list is past it after another event.
            emit(NAME);
            assert!(!wrong.is_open());
        }
    });
}
