//! The verdict of one call, decided by one atomic word: no clock, no thread, no global.
//!
//! ```text
//!            start               answer
//!   queued ─────────► running ────────────► answered    the caller takes the answer
//!      │                │  │ stop
//!      │ withdraw leave │  └──────────────► stopped     the operation ended, its answer does not count
//!      ▼                ▼
//!   withdrawn          left ──── stop ────► left, ended
//! ```
//!
//! The operation calls `start`, then `answer`, and `stop` where `answer` was not tried or failed; the caller calls `withdraw` or
//! `leave`, then `announce`. Each is one read-modify-write of the word.
//!
//! 1. `answer` and `leave` exclude each other: one of them finds the other's bit.
//! 2. `start` excludes `withdraw` and `leave` in the same way: a withdrawn operation never runs. A caller
//!    whose `withdraw` fails has seen a phase that is over, and looks again: the operation that
//!    has started meanwhile still has its grace.
//! 3. After `leave`, the bits *announced* (the caller's verdict event is out) and *ended* (the operation has disposed of its
//!    value) are each set once. Who sets the second one, and only he, reports the late ending, so it follows the verdict
//!    event and comes once, and nobody waits.
//! 4. The value of an answer belongs to the caller once `answer` succeeded, to the operation otherwise.

use crate::sync::{AtomicU8, Ordering};

const STARTED: u8 = 1;
const ANSWERED: u8 = 1 << 1;
const LEFT: u8 = 1 << 2;
const ANNOUNCED: u8 = 1 << 3;
const ENDED: u8 = 1 << 4;

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No worker has taken it yet.
    Queued,
    /// The operation runs.
    Running,
    /// The operation has published its answer.
    Answered,
    /// The operation has ended without an answer that counts.
    Stopped,
}

impl Phase {
    fn of(word: u8) -> Self {
        if word & ANSWERED != 0 {
            Self::Answered
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
    /// A call whose operation waits for somebody to run it.
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Where the call stands, as the caller sees it.
    pub(crate) fn phase(&self) -> Phase {
        Phase::of(self.0.load(Ordering::Acquire))
    }

    /// Whether the caller has given up. He may at any time.
    pub(crate) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed) & LEFT != 0
    }

    /// The operation is about to run; `false` if the caller has withdrawn it.
    #[must_use]
    pub(crate) fn start(&self) -> bool {
        self.0
            .compare_exchange(0, STARTED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The operation publishes the answer that it has stored; `false` if the caller has left.
    #[must_use]
    pub(crate) fn answer(&self) -> bool {
        self.0
            .compare_exchange(STARTED, ANSWERED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The operation has ended and disposed of what it made; `true` if the late report is the operation's to make.
    #[must_use]
    pub(crate) fn stop(&self) -> bool {
        self.0.fetch_or(ENDED, Ordering::AcqRel) & ANNOUNCED != 0
    }

    /// The caller withdraws a queued operation; `false` if it has been started.
    #[must_use]
    pub(crate) fn withdraw(&self) -> bool {
        self.0
            .compare_exchange(0, LEFT, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The caller gives up. What it left behind: after `Answered` the answer is his all the same.
    #[must_use]
    pub(crate) fn leave(&self) -> Phase {
        Phase::of(self.0.fetch_or(LEFT, Ordering::AcqRel))
    }

    /// The caller's verdict event is out; `true` if the late report is the caller's to make.
    #[must_use]
    pub(crate) fn announce(&self) -> bool {
        self.0.fetch_or(ANNOUNCED, Ordering::AcqRel) & ENDED != 0
    }
}

#[cfg(all(test, not(any(timeout_loom, timeout_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_the_caller_from_leaving_without_it() {
        let verdict = Verdict::new();
        assert!(verdict.start());
        assert!(verdict.answer());
        assert_eq!(verdict.leave(), Phase::Answered);
    }

    #[test]
    fn a_caller_who_has_left_gets_no_answer() {
        let verdict = Verdict::new();
        assert!(verdict.start());
        assert_eq!(verdict.leave(), Phase::Running);
        assert!(!verdict.answer());
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
        assert!(verdict.answer(), "a failed attempt changes nothing");
    }

    #[test]
    fn the_late_report_is_made_by_who_comes_second() {
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

    /// One call: its word, the place of its value, and what an observer would count.
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
                "the late event follows the verdict event"
            );
            self.late_events.fetch_add(1, SeqCst);
        }

        fn take(&self) -> Option<u8> {
            let value = self.value.lock().unwrap().take();
            assert!(value.is_some(), "who may take the value finds it");
            value
        }

        /// The operation's side, from the queue on.
        fn operate(&self) {
            if self.verdict.start() {
                self.runs.fetch_add(1, SeqCst);
                self.finish(true);
            }
        }

        /// The operation ends; `counts` says whether in time by its own clock.
        fn finish(&self, counts: bool) {
            *self.value.lock().unwrap() = Some(7);
            if counts && self.verdict.answer() {
                return;
            }
            self.take();
            self.drops.fetch_add(1, SeqCst);
            if self.verdict.stop() {
                self.late_event();
            }
        }

        /// The caller's side at its deadline: the answer, if one was published first.
        fn expire(&self) -> (Phase, Option<u8>) {
            let phase = self.verdict.leave();
            if phase == Phase::Answered {
                return (phase, self.take());
            }
            self.verdict_events.fetch_add(1, SeqCst);
            if self.verdict.announce() {
                self.late_event();
            }
            (phase, None)
        }

        fn check(&self, (phase, answer): (Phase, Option<u8>)) {
            let runs = self.runs.load(SeqCst);
            let drops = self.drops.load(SeqCst);
            assert_eq!(
                drops + usize::from(answer.is_some()),
                runs,
                "each value is handed out or dropped, once"
            );
            assert_eq!(
                self.late_events.load(SeqCst),
                drops,
                "each thrown away answer is reported once"
            );
            assert_eq!(
                runs == 0,
                phase == Phase::Queued,
                "withdrawn if and only if never run"
            );
        }
    }

    /// Both view at once, in every order; what the caller ended with.
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

    /// As `race`, with the operation under way.
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

    #[test]
    fn loom_finish_against_deadline_gives_one_verdict() {
        race_running(|call| call.finish(true));
    }

    #[test]
    fn loom_late_event_follows_the_verdict_event_once() {
        race_running(|call| call.finish(false));
    }

    #[test]
    fn loom_queued_is_either_run_or_withdrawn() {
        race(|call| call.operate(), Call::expire);
    }

    /// Guards against a caller who finds the call queued at its deadline, and leaves without grace
    /// although the operation has been started in between.
    #[test]
    fn loom_an_operation_that_starts_at_the_deadline_keeps_its_grace() {
        race(
            |call| call.operate(),
            |call| loop {
                // The deadline has passed. Within grace the caller leaves queued operations alone.
                match call.verdict.phase() {
                    Phase::Queued if call.verdict.withdraw() => {
                        call.verdict_events.fetch_add(1, SeqCst);
                        assert!(!call.verdict.announce(), "a withdrawn operation never ends");
                        return (Phase::Queued, None);
                    }
                    Phase::Answered => return (Phase::Answered, call.take()),
                    Phase::Queued | Phase::Running => thread::yield_now(),
                    Phase::Stopped => unreachable!("a result in grace counts"),
                }
            },
        );
    }

    #[test]
    fn loom_a_value_is_dropped_once_or_handed_out() {
        race(
            |call| call.operate(),
            |call| match call.verdict.phase() {
                // The caller looks before its time is up, and takes what is there.
                Phase::Answered => (Phase::Answered, call.take()),
                _ => call.expire(),
            },
        );
    }
}
