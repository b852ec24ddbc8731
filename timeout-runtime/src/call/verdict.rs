//! The verdict of one call: a single atomic word, without clocks, threads or globals.
//!
//! ```text
//!            start              publish
//!   queued ─────────► running ────────────► published   the caller takes the result
//!      │                │  │ stop
//!      │ withdraw leave │  └──────────────► stopped     it ended, its result does not count
//!      ▼                ▼
//!   withdrawn          left ──── stop ────► left, ended
//! ```
//!
//! The operation calls `start`, then `publish`. It calls `stop` if it did not call `publish`, or if
//! `publish` failed. The caller calls `withdraw` or `leave`, then `announce`. Each of these is one
//! read-modify-write of the word.
//!
//! 1. `publish` and `leave` exclude each other: the later one finds the bit of the earlier one.
//! 2. `start` excludes `withdraw` and `leave` in the same way: a withdrawn operation never runs. A
//!    caller whose `withdraw` fails has read an outdated phase. It reads the phase again, because
//!    the operation that started in between still has its grace.
//! 3. After `leave`, two bits are set once each. *Announced*: the caller has emitted the outcome
//!    event. *Ended*: the operation has dropped its value. Only the side that sets the second bit
//!    emits the late event. So the late event follows the outcome event, is emitted once, and
//!    neither side waits.
//! 4. The published value belongs to the caller if `publish` succeeded, and to the operation
//!    otherwise.

use crate::sync::{AtomicU8, Ordering};

const STARTED: u8 = 1;
const PUBLISHED: u8 = 1 << 1;
const LEFT: u8 = 1 << 2;
const ANNOUNCED: u8 = 1 << 3;
const ENDED: u8 = 1 << 4;

/// The phase of a call, as the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No worker or task has started the operation.
    Queued,
    /// The operation is running.
    Running,
    /// The operation has published its result.
    Published,
    /// The operation has ended without a result that counts.
    Stopped,
}

impl Phase {
    fn of(word: u8) -> Self {
        if word & PUBLISHED != 0 {
            Self::Published
        } else if word & ENDED != 0 {
            Self::Stopped
        } else if word & STARTED != 0 {
            Self::Running
        } else {
            Self::Queued
        }
    }
}

/// The state word of one call.
#[derive(Debug)]
pub(crate) struct Verdict(AtomicU8);

impl Verdict {
    /// The verdict of a call whose operation is queued.
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// The current phase.
    pub(crate) fn phase(&self) -> Phase {
        Phase::of(self.0.load(Ordering::Acquire))
    }

    /// Whether the caller has left. The caller can also leave right after this reading.
    pub(crate) fn has_caller_left(&self) -> bool {
        self.0.load(Ordering::Relaxed) & LEFT != 0
    }

    /// The operation is about to run. Returns `false` if the caller has left or withdrawn it.
    #[must_use]
    pub(crate) fn start(&self) -> bool {
        self.0
            .compare_exchange(0, STARTED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Publishes the result that the operation has stored. Returns `false` if the caller has left.
    #[must_use]
    pub(crate) fn publish(&self) -> bool {
        self.0
            .compare_exchange(STARTED, PUBLISHED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The operation has ended and dropped its value. Returns `true` if the operation must emit the
    /// late event.
    #[must_use]
    pub(crate) fn stop(&self) -> bool {
        self.0.fetch_or(ENDED, Ordering::AcqRel) & ANNOUNCED != 0
    }

    /// The caller withdraws a queued operation. Returns `false` if it has started.
    #[must_use]
    pub(crate) fn withdraw(&self) -> bool {
        self.0
            .compare_exchange(0, LEFT, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The caller leaves. Returns the phase before: after `Published` the result belongs to the
    /// caller.
    #[must_use]
    pub(crate) fn leave(&self) -> Phase {
        Phase::of(self.0.fetch_or(LEFT, Ordering::AcqRel))
    }

    /// The caller has emitted the outcome event. Returns `true` if the caller must emit the late
    /// event.
    #[must_use]
    pub(crate) fn announce(&self) -> bool {
        self.0.fetch_or(ANNOUNCED, Ordering::AcqRel) & ENDED != 0
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_leaves_after_a_published_result_gets_it() {
        let verdict = Verdict::new();
        assert!(verdict.start());
        assert!(verdict.publish());
        assert_eq!(verdict.leave(), Phase::Published);
    }

    #[test]
    fn a_result_is_not_published_after_the_caller_has_left() {
        let verdict = Verdict::new();
        assert!(verdict.start());
        assert_eq!(verdict.leave(), Phase::Running);
        assert!(!verdict.publish());
    }

    #[test]
    fn a_withdrawn_operation_never_starts() {
        let withdrawn = Verdict::new();
        assert!(withdrawn.withdraw());
        assert!(!withdrawn.start());
        let left = Verdict::new();
        assert_eq!(left.leave(), Phase::Queued);
        assert!(!left.start());
    }

    #[test]
    fn an_operation_that_has_started_cannot_be_withdrawn() {
        let verdict = Verdict::new();
        assert!(verdict.start());
        assert!(!verdict.withdraw());
        assert!(verdict.publish(), "a failed attempt changes nothing");
    }

    #[test]
    fn the_second_side_to_finish_emits_the_late_event() {
        let caller_last = Verdict::new();
        assert!(caller_last.start());
        assert!(!caller_last.stop());
        assert_eq!(caller_last.phase(), Phase::Stopped);
        assert_eq!(caller_last.leave(), Phase::Stopped);
        assert!(caller_last.announce());

        let operation_last = Verdict::new();
        assert!(operation_last.start());
        assert_eq!(operation_last.leave(), Phase::Running);
        assert!(!operation_last.announce());
        assert!(operation_last.stop());
    }
}

#[cfg(all(test, timeout_loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::Mutex;
    use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use loom::thread;

    /// A call: its verdict, its value, and counters of runs, drops and events.
    #[derive(Default)]
    struct Call {
        verdict: Verdict,
        value: Mutex<Option<u8>>,
        runs: AtomicUsize,
        drops: AtomicUsize,
        verdict_events: AtomicUsize,
        late_events: AtomicUsize,
    }

    impl Default for Verdict {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Call {
        fn late_event(&self) {
            assert_eq!(
                self.verdict_events.load(SeqCst),
                1,
                "the late event follows the outcome event"
            );
            self.late_events.fetch_add(1, SeqCst);
        }

        fn take(&self) -> Option<u8> {
            let value = self.value.lock().unwrap().take();
            assert!(value.is_some(), "the owner of the value finds it");
            value
        }

        /// The operation's side, starting from the queue.
        fn operate(&self) {
            if self.verdict.start() {
                self.runs.fetch_add(1, SeqCst);
                self.into_return(true);
            }
        }

        /// The operation ends. `counts` says whether it ended in time by its own clock.
        fn into_return(&self, counts: bool) {
            *self.value.lock().unwrap() = Some(7);
            if counts && self.verdict.publish() {
                return;
            }
            self.take();
            self.drops.fetch_add(1, SeqCst);
            if self.verdict.stop() {
                self.late_event();
            }
        }

        /// The caller's side at its deadline. Returns the result if it was published first.
        fn expire(&self) -> (Phase, Option<u8>) {
            let phase = self.verdict.leave();
            if phase == Phase::Published {
                return (phase, self.take());
            }
            self.verdict_events.fetch_add(1, SeqCst);
            if self.verdict.announce() {
                self.late_event();
            }
            (phase, None)
        }

        fn check(&self, (phase, result): (Phase, Option<u8>)) {
            let runs = self.runs.load(SeqCst);
            let drops = self.drops.load(SeqCst);
            assert_eq!(
                drops + usize::from(result.is_some()),
                runs,
                "each value is returned or dropped once"
            );
            assert_eq!(
                self.late_events.load(SeqCst),
                drops,
                "each late result is reported once"
            );
            assert_eq!(
                runs == 0,
                phase == Phase::Queued,
                "an operation is withdrawn if and only if it never ran"
            );
        }
    }

    /// Runs both sides in every order and checks the outcome.
    fn race(operate: fn(&Call), expire: fn(&Call) -> (Phase, Option<u8>)) {
        loom::model(move || {
            let call = Arc::new(Call::default());
            let operation = {
                let call = Arc::clone(&call);
                thread::spawn(move || operate(&call))
            };
            let ending = expire(&call);
            operation.join().unwrap();
            call.check(ending);
        });
    }

    /// As `race`, with an operation that has started.
    fn race_running(operate: fn(&Call)) {
        loom::model(move || {
            let call = Arc::new(Call::default());
            assert!(call.verdict.start());
            call.runs.fetch_add(1, SeqCst);
            let operation = {
                let call = Arc::clone(&call);
                thread::spawn(move || operate(&call))
            };
            let ending = call.expire();
            operation.join().unwrap();
            call.check(ending);
        });
    }

    // Fails if `publish` or `leave` is a load and a store.
    #[test]
    fn loom_a_result_at_the_deadline_gives_one_outcome() {
        race_running(|call| call.into_return(true));
    }

    // Fails if `stop` or `announce` is a load and a store.
    #[test]
    fn loom_one_late_event_follows_the_outcome_event() {
        race_running(|call| call.into_return(false));
    }

    // Fails if `start` is a load and a store.
    #[test]
    fn loom_a_queued_operation_either_runs_or_is_withdrawn() {
        race(|call| call.operate(), Call::expire);
    }

    /// A caller that found the call queued at its deadline left without grace, although the
    /// operation had started in between.
    // Fails if `withdraw` is a load and a store.
    #[test]
    fn loom_an_operation_that_starts_at_the_deadline_keeps_its_grace() {
        race(
            |call| call.operate(),
            |call| loop {
                // The deadline has passed. Within grace, the caller withdraws queued operations
                // only.
                match call.verdict.phase() {
                    Phase::Queued if call.verdict.withdraw() => {
                        call.verdict_events.fetch_add(1, SeqCst);
                        assert!(!call.verdict.announce(), "a withdrawn operation never ends");
                        return (Phase::Queued, None);
                    }
                    Phase::Published => return (Phase::Published, call.take()),
                    Phase::Queued | Phase::Running => thread::yield_now(),
                    Phase::Stopped => unreachable!("a result in grace counts"),
                }
            },
        );
    }

    // Fails if `publish` does not check whether the caller has left.
    #[test]
    fn loom_a_value_is_dropped_once_or_returned() {
        race(
            |call| call.operate(),
            |call| match call.verdict.phase() {
                // The caller checks before its deadline and takes a published result.
                Phase::Published => (Phase::Published, call.take()),
                _ => call.expire(),
            },
        );
    }
}
