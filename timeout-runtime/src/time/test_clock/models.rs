//! Models of the decision to move time, against participants that are about to wait, to leave, or
//! to be woken.

use super::*;
use crate::sync::model_env;
use crate::sync::thread::yield_now;
use crate::threads::parking::{self, CurrentParker};
use crate::time::Clock;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

#[cfg(timeout_loom)]
use loom::thread::{JoinHandle, spawn};
#[cfg(timeout_shuttle)]
use shuttle::thread::{JoinHandle, spawn};

const PREEMPTIONS: usize = 2;

fn at(secs: u64) -> Tick {
    START.plus(Duration::from_secs(secs))
}

fn join(clock: &Arc<VirtualClock>) -> Participant {
    Participant::join(clock, Kind::Test("run", Location::caller()))
}

/// Runs `f` as a participant on a thread, which runs from now on.
fn spawn_on(
    clock: &Arc<VirtualClock>,
    f: impl FnOnce(&Arc<VirtualClock>) + Send + 'static,
) -> JoinHandle<()> {
    let (clock, participant) = (Arc::clone(clock), join(clock));
    spawn(move || {
        {
            let _on_clock = participant.enter();
            f(&clock);
        }
        drop(participant);
    })
}

/// Waits until `until`, or until `is_over` holds and this thread was woken.
fn wait(clock: &Arc<VirtualClock>, until: Tick, is_over: impl Fn() -> bool) {
    let parker = CurrentParker::get();
    wait_on(&parker, clock, until, is_over);
}

fn wait_on(
    parker: &CurrentParker,
    clock: &Arc<VirtualClock>,
    until: Tick,
    is_over: impl Fn() -> bool,
) {
    let order = clock.order();
    while clock.now() < until && !is_over() {
        parker.park_on(Clock::Test(clock.id()), until, order);
    }
}

/// Something that one participant tells another one: whether it is set, and who waits for it.
#[derive(Clone)]
struct Signal(Arc<Mutex<(bool, Option<Waker>)>>);

impl Signal {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((false, None))))
    }

    fn is_set(&self) -> bool {
        lock(&*self.0).0
    }

    fn set(&self) {
        let waker = {
            let mut state = lock(&*self.0);
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Makes `set` wake `waker`.
    fn register(&self, waker: &Waker) {
        lock(&*self.0).1 = Some(waker.clone());
    }

    /// Waits until it is set, at most until `until`.
    fn wait(&self, clock: &Arc<VirtualClock>, until: Tick) {
        let parker = CurrentParker::get();
        self.register(parker.waker());
        wait_on(&parker, clock, until, || self.is_set());
    }
}

// Fails if
// - a participant that waits does not ring, or rings while another one runs;
// - an alarm is left behind by the last one to wait or to leave.
#[test]
fn each_wait_ends_at_its_own_instant() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let sleeps = |all: &'static [u64]| {
            move |clock: &Arc<VirtualClock>| {
                for secs in all {
                    wait(clock, at(*secs), || false);
                    assert_eq!(clock.now(), at(*secs));
                }
            }
        };
        // Both join before either runs.
        let main = join(&clock);
        let first = spawn_on(&clock, sleeps(&[5, 7]));
        let second = spawn_on(&clock, sleeps(&[6]));
        drop(main);
        first.join().unwrap();
        second.join().unwrap();
    });
}

// Fails if
// - the side that wakes does not count the participant as running;
// - an operation leaves before its caller is woken.
#[test]
fn a_caller_is_woken_at_the_instant_at_which_its_operation_ends() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let ended = Signal::new();
        let main = join(&clock);
        let operation = spawn_on(&clock, {
            let ended = ended.clone();
            move |clock| {
                wait(clock, at(5), || false);
                ended.set();
            }
        });
        {
            let _on_clock = main.enter();
            ended.wait(&clock, at(10));
            assert!(ended.is_set());
            assert_eq!(clock.now(), at(5));
        }
        drop(main);
        operation.join().unwrap();
    });
}

// Fails as the model above, for a wait that is cancelled at the moment in which it begins.
#[test]
fn a_cancelled_wait_ends_at_the_instant_of_its_cancellation() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let cancelled = Signal::new();
        let main = join(&clock);
        let waiting = spawn_on(&clock, {
            let cancelled = cancelled.clone();
            move |clock| {
                cancelled.wait(clock, at(10));
                assert_eq!(clock.now(), at(0));
            }
        });
        // It does not wait first.
        cancelled.set();
        drop(main);
        waiting.join().unwrap();
    });
}

// Fails if a participant leaves without ringing the alarm that another one waits for.
#[test]
fn the_last_one_to_leave_leaves_no_alarm_behind() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let main = join(&clock);
        let waiting = spawn_on(&clock, |clock| wait(clock, at(5), || false));
        let leaving = spawn_on(&clock, |_| {});
        drop(main);
        waiting.join().unwrap();
        leaving.join().unwrap();
        assert_eq!(clock.now(), at(5));
    });
}

// Fails if two alarms of one instant ring without the first waiting for what it has woken.
#[test]
fn alarms_of_one_instant_ring_one_after_the_other() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let main = join(&clock);
        let orders = [clock.order(), clock.order()];
        let threads = [1, 0].map(|number: usize| {
            let (log, order) = (Arc::clone(&log), orders[number]);
            spawn_on(&clock, move |clock| {
                let parker = CurrentParker::get();
                while clock.now() < at(5) {
                    parker.park_on(Clock::Test(clock.id()), at(5), order);
                }
                log.lock().unwrap().push((number, "woken"));
                yield_now();
                log.lock().unwrap().push((number, "leaves"));
            })
        });
        drop(main);
        for thread in threads {
            thread.join().unwrap();
        }
        let log = log.lock().unwrap();
        let expected = [(0, "woken"), (0, "leaves"), (1, "woken"), (1, "leaves")];
        assert_eq!(*log, expected);
    });
}

/// Looks again and again until `is_over` holds.
fn rest_until(is_over: impl Fn() -> bool) {
    let here = here().unwrap();
    loop {
        let activity = here.activity();
        if is_over() {
            break;
        }
        here.rest(activity);
        yield_now();
        here.resume();
    }
}

// Fails if time moves although a participant that rests has not looked since the last activity.
#[test]
fn a_participant_that_rests_looks_before_time_moves() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let sent = Signal::new();
        let main = join(&clock);
        let receiving = spawn_on(&clock, {
            let sent = sent.clone();
            move |clock| {
                rest_until(|| sent.is_set());
                assert_eq!(clock.now(), at(5));
            }
        });
        let sending = spawn_on(&clock, move |clock| {
            wait(clock, at(5), || false);
            sent.set();
            wait(clock, at(20), || false);
        });
        drop(main);
        receiving.join().unwrap();
        sending.join().unwrap();
    });
}

// Fails if one that rests moves the time although another one has not looked. For loom, two that
// look again and again have too many orders.
#[cfg(timeout_shuttle)]
#[test]
fn all_participants_that_rest_look_before_time_moves() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let sent = Signal::new();
        let _alarm = clock.arm(at(20), clock.order(), Waker::noop().clone());
        let main = join(&clock);
        let receiving = spawn_on(&clock, {
            let sent = sent.clone();
            move |clock| {
                rest_until(|| sent.is_set());
                assert_eq!(clock.now(), START);
            }
        });
        let resting = spawn_on(&clock, |clock| rest_until(|| clock.now() == at(20)));
        let sending = spawn_on(&clock, move |_| sent.set());
        drop(main);
        for thread in [receiving, resting, sending] {
            thread.join().unwrap();
        }
    });
}

// Fails if a wake-up during a poll, or between two polls, lets time move.
#[test]
fn a_woken_future_is_polled_before_time_moves() {
    model_env::check(PREEMPTIONS, || {
        let clock = VirtualClock::new(false);
        let signal = Signal::new();
        let kind = Kind::Test("scope", Location::caller());
        let mut participant = Some(PolledParticipant::join(&clock, kind));
        let waking = spawn_on(&clock, {
            let signal = signal.clone();
            move |clock| {
                wait(clock, at(5), || false);
                signal.set();
            }
        });
        // It keeps the time from standing where it is.
        let _alarm = clock.arm(at(10), clock.order(), Waker::noop().clone());
        let mut future = pin!(poll_fn(|context| {
            signal.register(context.waker());
            if signal.is_set() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        // The executor is not on the clock.
        parking::block_on(poll_fn(|context| {
            let polled = PolledParticipant::poll(&mut participant, context, |context| {
                future.as_mut().poll(context)
            });
            if polled.is_ready() {
                assert_eq!(clock.now(), at(5));
            }
            polled
        }));
        waking.join().unwrap();
    });
}
