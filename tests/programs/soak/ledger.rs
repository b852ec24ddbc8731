//! The ledger of events: one outcome event for each call, then at most one late event.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use timeout_runtime::{CallStatus, Cause, Event, EventKind, Failure, TimeoutError};

use super::course::Way;
use super::operation;

/// An event of a call, or its end at the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Success,
    Error,
    Panic,
    TimedOut,
    Cancelled,
    NotStarted,
    Dropped,
    LateSuccess,
    LateStop,
    LateError,
    LatePanic,
}

impl Kind {
    const EVERY: [Self; 11] = [
        Self::Success,
        Self::Error,
        Self::Panic,
        Self::TimedOut,
        Self::Cancelled,
        Self::NotStarted,
        Self::Dropped,
        Self::LateSuccess,
        Self::LateStop,
        Self::LateError,
        Self::LatePanic,
    ];

    /// `None` for events that must not occur here.
    fn of_event(event: &EventKind<'_>) -> Option<Self> {
        Some(match event {
            EventKind::Succeeded => Self::Success,
            EventKind::Failed(Failure::Error(_)) => Self::Error,
            EventKind::Failed(Failure::Panic(_)) => Self::Panic,
            EventKind::TimedOut => Self::TimedOut,
            EventKind::Cancelled => Self::Cancelled,
            EventKind::NotStarted(Cause::TimedOut | Cause::Cancelled | Cause::NoWorker) => {
                Self::NotStarted
            }
            EventKind::Dropped => Self::Dropped,
            EventKind::AbandonedWorkerSucceeded => Self::LateSuccess,
            // The texts begin with the variants of `Trouble`.
            EventKind::AbandonedWorkerStopped(Failure::Error(text))
                if text.starts_with("NoResult") =>
            {
                Self::LateStop
            }
            EventKind::AbandonedWorkerFailed(Failure::Error(text)) if text.starts_with("Own") => {
                Self::LateError
            }
            EventKind::AbandonedWorkerFailed(Failure::Panic(_)) => Self::LatePanic,
            _ => return None,
        })
    }

    pub(crate) fn of_error(error: &TimeoutError) -> Option<Self> {
        Some(match error.status() {
            CallStatus::TimedOut => Self::TimedOut,
            CallStatus::UpstreamCancelled => Self::Cancelled,
            CallStatus::NotStarted => Self::NotStarted,
            _ => return None,
        })
    }

    fn is_late(self) -> bool {
        matches!(
            self,
            Self::LateSuccess | Self::LateStop | Self::LateError | Self::LatePanic
        )
    }

    fn header(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Panic => "panic",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not started",
            Self::Dropped => "dropped",
            Self::LateSuccess => "late success",
            Self::LateStop => "late stop",
            Self::LateError => "late error",
            Self::LatePanic => "late panic",
        }
    }
}

/// Number of breaches that are printed.
const SHOWN: usize = 20;

static BREACHES: AtomicUsize = AtomicUsize::new(0);

/// Reports a broken rule.
pub(crate) fn breach(what: impl Display) {
    if BREACHES.fetch_add(1, Ordering::Relaxed) < SHOWN {
        eprintln!("BREACH: {what}");
    }
}

pub(crate) fn breaches() -> usize {
    BREACHES.load(Ordering::SeqCst)
}

/// Greatest lateness of a timeout on a busy machine, in addition to the longest stop of the
/// process.
const LATE_AT_MOST: Duration = Duration::from_secs(10);

/// The last activity of an idle thread, and the longest time between two activities.
static SEEN: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

/// Measures for how long the whole process was stopped.
pub(crate) fn watch_for_stops() {
    thread::spawn(|| {
        loop {
            let longest = longest_stop();
            *SEEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), longest));
            thread::sleep(Duration::from_millis(10));
        }
    });
}

pub(crate) fn longest_stop() -> Duration {
    let seen = *SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.map_or(Duration::ZERO, |(last, longest)| {
        longest.max(last.elapsed())
    })
}

/// What the events of a call have reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reported {
    Outcome,
    Late,
}

/// The calls of one part.
struct Page {
    /// How many calls the part makes.
    calls: usize,
    /// Those that have an event, by their ids, in parts with a lock each.
    reported: Vec<Mutex<HashMap<u64, Reported>>>,
}

/// The number of these parts. Consecutive ids are in different ones.
const PARTS: u64 = 64;

static PAGE: RwLock<Page> = RwLock::new(Page {
    calls: 0,
    reported: Vec::new(),
});

impl Page {
    /// Records that a call has reached `now`. Returns what it had reported before.
    fn report(&self, call: u64, now: Reported) -> Option<Reported> {
        let part = usize::try_from(call % PARTS).ok()?;
        let mut part = self.reported.get(part)?.lock().ok()?;
        part.insert(call, now)
    }
}

static CALLS: [AtomicUsize; Way::EVERY.len()] = [const { AtomicUsize::new(0) }; Way::EVERY.len()];

static EVENTS: [[AtomicUsize; Kind::EVERY.len()]; Way::EVERY.len()] =
    [const { [const { AtomicUsize::new(0) }; Kind::EVERY.len()] }; Way::EVERY.len()];

thread_local! {
    /// The outcome events on this thread since the last `take_outcome`.
    static OUTCOMES: Cell<(usize, Option<Kind>)> = const { Cell::new((0, None)) };
}

/// The listener that counts all events.
pub(crate) fn record(event: &Event<'_>) {
    let (Some(way), Some(kind)) = (Way::of_name(event.name), Kind::of_event(&event.kind)) else {
        return breach(format!("unexpected: {event}"));
    };
    EVENTS[way as usize][kind as usize].fetch_add(1, Ordering::Relaxed);
    let (from, to) = if kind.is_late() {
        (Some(Reported::Outcome), Reported::Late)
    } else {
        let (count, _) = OUTCOMES.get();
        OUTCOMES.set((count + 1, Some(kind)));
        (None, Reported::Outcome)
    };
    let page = PAGE.read().unwrap_or_else(PoisonError::into_inner);
    if page.report(event.call.into(), to) != from {
        breach(format!("repeated, or before its outcome: {event}"));
    }
    drop(page);
    let beside_limit = match kind {
        // A success returned by a poll in place counts even after the limit.
        Kind::Success if event.name == Way::AsyncInline.name() => false,
        Kind::Success => event.limit.is_some_and(|limit| event.elapsed > limit),
        Kind::TimedOut => event.limit.is_none_or(|limit| {
            let late = event.elapsed.checked_sub(limit);
            late.is_none_or(|late| late > LATE_AT_MOST && late > LATE_AT_MOST + longest_stop())
        }),
        _ => false,
    };
    if beside_limit {
        breach(format!("at the wrong time: {event}"));
    }
}

/// Counts a call that is about to be made.
pub(crate) fn count_call(way: Way) {
    CALLS[way as usize].fetch_add(1, Ordering::Relaxed);
}

/// The outcome event on this thread since the last call; more than one event is a breach.
pub(crate) fn take_outcome() -> Option<Kind> {
    let (count, kind) = OUTCOMES.take();
    if count > 1 {
        breach(format!(
            "{count} outcome events for one call, the last: {kind:?}"
        ));
    }
    kind
}

/// Starts a page for the next `calls` calls.
pub(crate) fn turn_page(calls: usize) {
    let mut page = PAGE.write().unwrap_or_else(PoisonError::into_inner);
    if page.calls == calls {
        for part in &mut page.reported {
            part.get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
    } else {
        // More than a part needs, so that none grows while memory is measured.
        let part = || Mutex::new(HashMap::with_capacity(calls / 16 + 64));
        page.reported = (0..PARTS).map(|_| part()).collect();
        page.calls = calls;
    }
}

fn count_events(way: Way, kinds: &[Kind]) -> usize {
    let events = &EVENTS[way as usize];
    kinds
        .iter()
        .map(|kind| events[*kind as usize].load(Ordering::SeqCst))
        .sum()
}

/// Reports a breach for each sum that does not add up when no call is in progress.
pub(crate) fn audit() {
    let page = PAGE.read().unwrap_or_else(PoisonError::into_inner);
    let parts = page.reported.iter();
    let reported: usize = parts
        .map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).len())
        .sum();
    if reported != page.calls {
        breach(format!("{} calls, {reported} with an event", page.calls));
    }
    drop(page);
    for way in Way::EVERY {
        let name = way.name();
        let calls = CALLS[way as usize].load(Ordering::SeqCst);
        let outcomes = count_events(way, &Kind::EVERY[..7]);
        if calls != outcomes {
            breach(format!("{name}: {calls} calls, {outcomes} outcome events"));
        }
        let [started, ended, unfinished] = operation::tally(way);
        let in_time = count_events(way, &Kind::EVERY[..3]);
        let late = count_events(way, &Kind::EVERY[7..]);
        if ended != in_time + late {
            breach(format!(
                "{name}: {ended} operations ended, {in_time} in time, {late} late"
            ));
        }
        if started != ended + unfinished {
            breach(format!(
                "{name}: {started} operations started, {ended} ended, {unfinished} did not"
            ));
        }
        if unfinished != 0 && way != Way::AsyncInline {
            breach(format!(
                "{name}: {unfinished} operations were dropped unfinished"
            ));
        }
    }
    operation::audit();
}

pub(crate) fn print() {
    print!("\n{:>16}", "calls");
    for kind in Kind::EVERY {
        print!("{:>12}", kind.header());
    }
    println!("{:>12}{:>12}", "started", "unfinished");
    for way in Way::EVERY {
        print!("{:>16}", way.name());
        for kind in Kind::EVERY {
            print!("{:>12}", count_events(way, &[kind]));
        }
        let [started, _, unfinished] = operation::tally(way);
        println!("{started:>12}{unfinished:>12}");
    }
    println!();
}
