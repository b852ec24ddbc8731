//! The ledger of events: one verdict for each call, and after it at most one report of an operation that ended late.

use std::cell::Cell;
use std::fmt::Display;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use timeout_runtime::{CallStatus, Cause, Event, EventKind, Failure, TimeoutError};

use super::course::Way;
use super::operation;

/// What is told of a call, or happens to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Answer,
    Error,
    Panic,
    TimedOut,
    Cancelled,
    NotStarted,
    Dropped,
    LateAnswer,
    LateError,
    LatePanic,
}

impl Kind {
    const EVERY: [Self; 10] = [
        Self::Answer,
        Self::Error,
        Self::Panic,
        Self::TimedOut,
        Self::Cancelled,
        Self::NotStarted,
        Self::Dropped,
        Self::LateAnswer,
        Self::LateError,
        Self::LatePanic,
    ];

    /// `None` for what does not happen here.
    fn of_event(event: &EventKind<'_>) -> Option<Self> {
        Some(match event {
            EventKind::Succeeded => Self::Answer,
            EventKind::Failed(Failure::Error(_)) => Self::Error,
            EventKind::Failed(Failure::Panic(_)) => Self::Panic,
            EventKind::TimedOut => Self::TimedOut,
            EventKind::Cancelled => Self::Cancelled,
            EventKind::NotStarted(Cause::TimedOut | Cause::Cancelled | Cause::NoWorker) => {
                Self::NotStarted
            }
            EventKind::Dropped => Self::Dropped,
            EventKind::AbandonedWorkerSucceeded => Self::LateAnswer,
            EventKind::AbandonedWorkerFailed(Failure::Error(_)) => Self::LateError,
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

    fn header(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Error => "error",
            Self::Panic => "panic",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not started",
            Self::Dropped => "dropped",
            Self::LateAnswer => "late answer",
            Self::LateError => "late error",
            Self::LatePanic => "late panic",
        }
    }
}

/// So many breaches are printed.
const SHOWN: usize = 20;

static BREACHES: AtomicUsize = AtomicUsize::new(0);

/// Something does not hold.
pub(crate) fn breach(what: impl Display) {
    if BREACHES.fetch_add(1, Ordering::Relaxed) < SHOWN {
        eprintln!("BREACH: {what}");
    }
}

pub(crate) fn breaches() -> usize {
    BREACHES.load(Ordering::SeqCst)
}

/// So late a call may time out on a machine that does other things too, besides the time for which nothing went on at all.
const LATE_AT_MOST: Duration = Duration::from_secs(10);

/// When a thread that does nothing else was seen last, and for how long it was not seen at the longest.
static SEEN: Mutex<Option<(Instant, Duration)>> = Mutex::new(None);

/// Watches for times when the whole process stands still, because somebody has stopped it.
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

const UNTOLD: u8 = 1;
const DECIDED: u8 = 2;
const LATE: u8 = 3;

/// A part's calls by number, which are in a row.
struct Page {
    /// The number of the first one.
    first: u64,
    calls: Vec<AtomicU8>,
}

static PAGE: RwLock<Page> = RwLock::new(Page {
    first: 1,
    calls: Vec::new(),
});

static CALLS: [AtomicUsize; Way::EVERY.len()] = [const { AtomicUsize::new(0) }; Way::EVERY.len()];

static TOLD: [[AtomicUsize; Kind::EVERY.len()]; Way::EVERY.len()] =
    [const { [const { AtomicUsize::new(0) }; Kind::EVERY.len()] }; Way::EVERY.len()];

thread_local! {
    /// The verdicts told on this thread since somebody asked.
    static VERDICTS: Cell<(usize, Option<Kind>)> = const { Cell::new((0, None)) };
}

/// A listener.
pub(crate) fn hear(event: &Event<'_>) {
    let (Some(way), Some(kind)) = (Way::of_name(event.name), Kind::of_event(&event.kind)) else {
        return breach(format!("unexpected: {event}"));
    };
    TOLD[way as usize][kind as usize].fetch_add(1, Ordering::Relaxed);
    let (from, to) = if event.kind.is_verdict() {
        let (count, _) = VERDICTS.get();
        VERDICTS.set((count + 1, Some(kind)));
        (UNTOLD, DECIDED)
    } else {
        (DECIDED, LATE)
    };
    let before = PAGE.read().ok().and_then(|page| {
        let place = event.call.get().checked_sub(page.first)?;
        let call = page.calls.get(usize::try_from(place).ok()?)?;
        Some(call.swap(to, Ordering::SeqCst))
    });
    if before != Some(from) {
        breach(format!("doubled, too early, or of no call: {event}"));
    }
    let beside_limit = match kind {
        // What a poll in place returns counts, also after the limit.
        Kind::Answer if event.name == Way::AsyncInline.name() => false,
        Kind::Answer => event.limit.is_some_and(|limit| event.elapsed > limit),
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

/// A call is about to be made.
pub(crate) fn count_call(way: Way) {
    CALLS[way as usize].fetch_add(1, Ordering::Relaxed);
}

/// The verdict told on this thread since the last time; more than one are a breach.
pub(crate) fn take_verdict() -> Option<Kind> {
    let (count, kind) = VERDICTS.take();
    if count > 1 {
        breach(format!("{count} verdicts in a row, the last: {kind:?}"));
    }
    kind
}

/// Begins a page for the next `calls` calls.
pub(crate) fn turn_page(calls: usize) {
    let mut page = PAGE.write().unwrap_or_else(PoisonError::into_inner);
    page.first += page.calls.len() as u64;
    if page.calls.len() == calls {
        page.calls
            .iter_mut()
            .for_each(|call| *call.get_mut() = UNTOLD);
    } else {
        page.calls = (0..calls).map(|_| AtomicU8::new(UNTOLD)).collect();
    }
}

fn told(way: Way, kinds: &[Kind]) -> usize {
    let told = &TOLD[way as usize];
    kinds
        .iter()
        .map(|kind| told[*kind as usize].load(Ordering::SeqCst))
        .sum()
}

/// Breaches for all that does not add up now that nothing is under way.
pub(crate) fn audit() {
    let page = PAGE.read().unwrap_or_else(PoisonError::into_inner);
    let lost = page
        .calls
        .iter()
        .filter(|call| call.load(Ordering::SeqCst) == UNTOLD);
    match lost.count() {
        0 => {}
        lost => breach(format!(
            "{lost} of {} calls have no verdict",
            page.calls.len()
        )),
    }
    for way in Way::EVERY {
        let name = way.name();
        let calls = CALLS[way as usize].load(Ordering::SeqCst);
        let verdicts = told(way, &Kind::EVERY[..7]);
        if calls != verdicts {
            breach(format!("{name}: {calls} calls, {verdicts} verdicts"));
        }
        let [started, ended, unfinished] = operation::tally(way);
        let in_time = told(way, &Kind::EVERY[..3]);
        let late = told(way, &Kind::EVERY[7..]);
        if ended != in_time + late {
            breach(format!(
                "{name}: {ended} operations ended, {in_time} told in time, {late} late"
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
            print!("{:>12}", told(way, &[kind]));
        }
        let [started, _, unfinished] = operation::tally(way);
        println!("{started:>12}{unfinished:>12}");
    }
    println!();
}
