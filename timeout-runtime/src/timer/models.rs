//! Models of what can race in the timer: in every order with a few preemptions, and in random
//! orders. Time moves only where a model says so.

use super::*;
use crate::CancelToken;
use crate::sync::thread::{self, Thread as Handle};
use crate::sync::{AtomicUsize, model_env};
use crate::time::{Clock, Deadline};
use crate::token::Owner;
use crate::token::node::{NodeRef, TIMER, Watch};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool as Flag, Ordering::SeqCst};
use std::task::Wake;

#[cfg(timeout_loom)]
use loom::thread::spawn;
#[cfg(timeout_shuttle)]
use shuttle::thread::spawn;

const PREEMPTIONS: usize = 2;

const MS: Duration = Duration::from_millis(1);

/// Counts how often its alarm fires, and wakes the thread that waits for it.
struct Bell {
    rings: AtomicUsize,
    /// The alarm must not fire before.
    at: Tick,
    waits: Handle,
    /// While this is set, the alarm's code blocks.
    holds: Flag,
    fired_by: OnceLock<Handle>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if Tick::of(model_env::latest()) >= self.at {
            self.rings.fetch_add(1, SeqCst);
        }
        let _ = self.fired_by.set(thread::current());
        self.waits.unpark();
        while self.holds.load(SeqCst) {
            thread::park();
        }
    }
}

impl Bell {
    fn new(at: Tick) -> Arc<Self> {
        Self::with(at, false)
    }

    fn with(at: Tick, holds: bool) -> Arc<Self> {
        Arc::new(Self {
            rings: AtomicUsize::new(0),
            at,
            waits: thread::current(),
            holds: Flag::new(holds),
            fired_by: OnceLock::new(),
        })
    }

    fn arm(self: &Arc<Self>) -> Key {
        let waker = Arc::clone(self).into();
        TIMER.arm(self.at, Alarm::Wake(Some(waker))).unwrap()
    }

    fn rings(&self) -> usize {
        // In loom, a plain load can miss the last ring.
        self.rings.fetch_add(0, SeqCst)
    }

    /// Waits until the alarm has fired. If it never does, all threads are blocked.
    fn wait(&self) {
        while self.rings() == 0 {
            thread::park();
        }
    }

    /// As `wait`, while time moves on.
    fn wait_for_deputy(&self) {
        move_time_until(|| self.rings() > 0);
        self.wait();
    }

    /// Lets the alarm's code return.
    fn let_go(&self) {
        self.holds.store(false, SeqCst);
        if let Some(thread) = self.fired_by.get() {
            thread.unpark();
        }
    }

    /// Whether the timer holds no reference to it.
    fn is_free(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// Moves time until `is_over`, for so long that every other thread runs in between.
fn move_time_until(is_over: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_over() {
            return;
        }
        model_env::advance(STUCK);
        thread::yield_now();
    }
}

fn after(ms: u32) -> Tick {
    Tick::now().plus(ms * MS)
}

#[test]
fn an_alarm_rings_once_when_its_time_has_come() {
    model_env::check(PREEMPTIONS, || {
        let before = TIMER.fired_alarms();
        let bell = Bell::new(after(5));
        bell.arm();
        model_env::advance(5 * MS);
        bell.wait();
        assert_ne!(TIMER.fired_alarms(), before);
        model_env::advance(5 * MS);
        assert_eq!(bell.rings(), 1);
    });
}

#[test]
fn an_earlier_alarm_wakes_the_keeper() {
    model_env::check(PREEMPTIONS, || {
        let (soon, far) = (Bell::new(after(5)), Bell::new(after(60_000)));
        let other = spawn({
            let far = Arc::clone(&far);
            move || far.arm()
        });
        soon.arm();
        other.join().unwrap();
        model_env::advance(5 * MS);
        soon.wait();
        assert_eq!((soon.rings(), far.rings()), (1, 0));
    });
}

#[test]
fn an_alarm_armed_while_time_goes_on_rings() {
    model_env::check(PREEMPTIONS, || {
        let (one, two) = (Bell::new(after(5)), Bell::new(after(5)));
        one.arm();
        let time = spawn(|| model_env::advance(5 * MS));
        two.arm();
        time.join().unwrap();
        one.wait();
        two.wait();
    });
}

#[test]
fn alarms_of_two_shards_ring_while_the_keeper_collects() {
    model_env::check(PREEMPTIONS, || {
        let (one, two) = (Bell::new(after(5)), Bell::new(after(5)));
        one.arm();
        let other = spawn({
            let two = Arc::clone(&two);
            move || two.arm()
        });
        model_env::advance(5 * MS);
        other.join().unwrap();
        one.wait();
        two.wait();
        assert_eq!((one.rings(), two.rings()), (1, 1));
    });
}

#[test]
fn an_alarm_is_disarmed_or_rings_and_another_in_its_place_stays() {
    model_env::check(PREEMPTIONS, || {
        let (one, two) = (Bell::new(after(5)), Bell::new(after(10)));
        let key = one.arm();
        let time = spawn(|| model_env::advance(5 * MS));
        // It reuses the slot of the first one, if that has fired.
        two.arm();
        TIMER.disarm(key);
        time.join().unwrap();
        model_env::advance(5 * MS);
        two.wait();
        assert!(one.rings() <= 1);
        assert_eq!(two.rings(), 1);
    });
}

#[test]
fn a_disarmed_alarm_never_rings() {
    model_env::check(PREEMPTIONS, || {
        let bell = Bell::new(after(5));
        let key = bell.arm();
        TIMER.disarm(key);
        assert!(bell.is_free());
        let next = Bell::new(after(5));
        next.arm();
        TIMER.disarm(key);
        model_env::advance(5 * MS);
        next.wait();
        assert_eq!(bell.rings(), 0);
    });
}

#[test]
fn an_alarm_is_rearmed_or_rings_and_another_in_its_place_stays() {
    model_env::check(PREEMPTIONS, || {
        let (one, two) = (Bell::new(after(5)), Bell::new(after(5)));
        let next = Bell::new(after(10));
        let key = one.arm();
        let time = spawn(|| model_env::advance(5 * MS));
        // It reuses the slot of the first one, if that has fired.
        next.arm();
        let is_rearmed = TIMER.rearm(key, Arc::clone(&two).into());
        time.join().unwrap();
        if is_rearmed { &two } else { &one }.wait();
        model_env::advance(5 * MS);
        next.wait();
        assert_eq!(one.rings() + two.rings(), 1);
        assert_eq!(is_rearmed, two.rings() == 1);
    });
}

#[test]
fn a_token_that_is_linked_while_a_deadline_comes_hears_it() {
    model_env::check(PREEMPTIONS, || {
        let at = after(5);
        let owner = Owner::context(Deadline::on(Clock::Real, at));
        let token = CancelToken(NodeRef::new(owner, Watch::Clocked, &[]));
        let time = spawn(|| model_env::advance(5 * MS));
        let child = token.child();
        let bell = Bell::new(at);
        if child.0.add_waiter(Arc::clone(&bell).into()).is_some() {
            bell.wait();
        }
        time.join().unwrap();
        assert!(child.is_cancelled());
    });
}

#[test]
fn the_deputy_takes_over_from_a_keeper_that_is_stuck() {
    model_env::check(PREEMPTIONS, || {
        let stuck = Bell::with(after(1), true);
        let next = Bell::new(after(2));
        stuck.arm();
        next.arm();
        model_env::advance(MS);
        stuck.wait();
        next.wait_for_deputy();
        assert_eq!((stuck.rings(), next.rings()), (1, 1));
    });
}

#[test]
fn the_deputy_rings_the_rest_of_what_a_stuck_keeper_has_collected() {
    model_env::check(PREEMPTIONS, || {
        let at = after(1);
        let [stuck, stuck_too] = [(); 2].map(|()| Bell::with(at, true));
        let next = Bell::new(at);
        stuck.arm();
        stuck_too.arm();
        next.arm();
        model_env::advance(MS);
        for bell in [stuck, stuck_too, next] {
            bell.wait_for_deputy();
            assert_eq!(bell.rings(), 1);
        }
    });
}

#[test]
fn an_alarm_that_is_set_while_the_keeper_is_stuck_rings() {
    model_env::check(PREEMPTIONS, || {
        let stuck = Bell::with(after(1), true);
        stuck.arm();
        model_env::advance(MS);
        stuck.wait();
        let next = Bell::new(after(1));
        next.arm();
        next.wait_for_deputy();
        assert_eq!((stuck.rings(), next.rings()), (1, 1));
    });
}

#[test]
fn a_deputy_that_goes_to_sleep_is_woken_when_an_alarm_rings_again() {
    model_env::check(PREEMPTIONS, || {
        let first = Bell::new(after(1));
        let stuck = Bell::with(after(100), true);
        let next = Bell::new(after(101));
        first.arm();
        stuck.arm();
        next.arm();
        model_env::advance(MS);
        first.wait();
        // Long enough for the deputy to see that no alarm fires.
        for _ in 0..5 {
            model_env::advance(STUCK);
            thread::yield_now();
        }
        stuck.wait_for_deputy();
        next.wait_for_deputy();
    });
}

#[test]
fn a_keeper_that_comes_back_while_its_deputy_takes_over_rings_nothing_twice() {
    model_env::check(PREEMPTIONS, || {
        let slow = Bell::with(after(1), true);
        let next = Bell::new(after(2));
        slow.arm();
        next.arm();
        model_env::advance(MS);
        slow.wait();
        model_env::advance(STUCK);
        thread::yield_now();
        model_env::advance(STUCK);
        slow.let_go();
        next.wait();
        let last = Bell::new(after(1));
        last.arm();
        model_env::advance(MS);
        last.wait();
        assert_eq!((slow.rings(), next.rings(), last.rings()), (1, 1, 1));
    });
}

/// Three threads arm ten alarms each, disarm some and rearm some, while time moves and some alarms
/// block.
#[cfg(timeout_shuttle)]
#[test]
fn each_of_many_alarms_rings_once_or_was_disarmed() {
    use shuttle::rand::{Rng, thread_rng};

    const ALARMS: usize = 10;

    /// The bell that must ring, if any, and the bells that must not.
    fn alarm() -> (Option<Arc<Bell>>, Vec<Arc<Bell>>) {
        let mut random = thread_rng();
        let at = after(random.gen_range(1..30));
        let bell = Bell::with(at, random.gen_range(0..8) == 0);
        let key = bell.arm();
        match random.gen_range(0..3) {
            0 => {
                TIMER.disarm(key);
                if bell.is_free() && bell.rings() == 0 {
                    (None, vec![bell])
                } else {
                    // The keeper has taken it already.
                    (Some(bell), vec![])
                }
            }
            1 => {
                let other = Bell::new(at);
                if TIMER.rearm(key, Arc::clone(&other).into()) {
                    (Some(other), vec![bell])
                } else {
                    (Some(bell), vec![other])
                }
            }
            _ => (Some(bell), vec![]),
        }
    }

    model_env::check(PREEMPTIONS, || {
        let others: Vec<_> = (0..3)
            .map(|_| spawn(|| (0..ALARMS).map(|_| alarm()).collect::<Vec<_>>()))
            .collect();
        model_env::advance(10 * MS);
        let bells: Vec<_> = others
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        move_time_until(|| {
            let mut ringing = bells.iter().flat_map(|(rings, _)| rings);
            ringing.all(|bell| bell.rings() > 0)
        });
        model_env::advance(100 * MS);
        for (rings, silent) in &bells {
            assert!(rings.iter().all(|bell| bell.rings() == 1));
            assert!(silent.iter().all(|bell| bell.rings() == 0));
        }
        assert_eq!(TIMER.armed(), 0);
    });
}
