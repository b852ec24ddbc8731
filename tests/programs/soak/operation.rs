//! [`Job`]: the operation of one call, with counters for its starts, values and ends.

use std::panic::{self, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use timeout_runtime::{CancelToken, TimeoutError};

use super::course::{Course, End, Way, Work};
use super::ledger::breach;

static MADE: AtomicUsize = AtomicUsize::new(0);
static HANDED_OUT: AtomicUsize = AtomicUsize::new(0);
static DROPPED: AtomicUsize = AtomicUsize::new(0);
static PANICKED: AtomicUsize = AtomicUsize::new(0);
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// Counters of the operations in one place.
struct Tally {
    started: AtomicUsize,
    /// Ended with a success, an error or a panic.
    ended: AtomicUsize,
    /// Dropped unfinished.
    unfinished: AtomicUsize,
}

static TALLIES: [Tally; Way::EVERY.len()] = [const {
    Tally {
        started: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
        unfinished: AtomicUsize::new(0),
    }
}; Way::EVERY.len()];

/// The number of operations that started, that ended by themselves, and that were dropped
/// unfinished.
pub(crate) fn tally(way: Way) -> [usize; 3] {
    let tally = &TALLIES[way as usize];
    [&tally.started, &tally.ended, &tally.unfinished].map(read)
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn read(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// The payload of successes, errors and panics.
#[derive(Debug)]
pub(crate) struct Value {
    is_handed_out: bool,
}

impl Value {
    fn make() -> Self {
        count(&MADE);
        Self {
            is_handed_out: false,
        }
    }

    /// Counts the value as received by a caller.
    pub(crate) fn receive(mut self) {
        self.is_handed_out = true;
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        count(if self.is_handed_out {
            &HANDED_OUT
        } else {
            &DROPPED
        });
    }
}

#[derive(Debug)]
pub(crate) enum Trouble {
    Own(Value),
    NoResult(TimeoutError),
}

impl From<TimeoutError> for Trouble {
    fn from(error: TimeoutError) -> Self {
        Self::NoResult(error)
    }
}

pub(crate) type OpResult = Result<Value, Trouble>;

/// The arguments of a call, and its operation.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) way: Way,
    pub(crate) limit: Duration,
    pub(crate) upstream: Option<CancelToken>,
    work: Work,
    end: End,
}

impl Job {
    pub(crate) fn new(course: &Course, upstream: Option<CancelToken>) -> Self {
        Self {
            way: course.way,
            limit: course.limit,
            upstream,
            work: course.work,
            end: course.end,
        }
    }

    pub(crate) fn run(&self, token: &CancelToken) -> OpResult {
        let under_way = UnderWay::start(self.way);
        match self.work {
            Work::Nothing => {}
            Work::Yield => thread::yield_now(),
            Work::UntilCancelled => {
                let _ = token.wait_timeout(Duration::MAX);
            }
            Work::Nap(nap) | Work::Block(nap) => thread::sleep(nap),
        }
        under_way.end(self.end, token)
    }

    pub(crate) async fn run_async(&self, token: &CancelToken) -> OpResult {
        let under_way = UnderWay::start(self.way);
        match self.work {
            Work::Nothing => {}
            Work::Yield => tokio::task::yield_now().await,
            Work::UntilCancelled => {
                token.cancelled().await;
            }
            Work::Nap(nap) => tokio::time::sleep(nap).await,
            Work::Block(nap) => thread::sleep(nap),
        }
        under_way.end(self.end, token)
    }
}

/// A started operation, which counts its end when it is dropped.
struct UnderWay {
    way: Way,
    has_ended: bool,
}

impl UnderWay {
    fn start(way: Way) -> Self {
        count(&TALLIES[way as usize].started);
        Self {
            way,
            has_ended: false,
        }
    }

    fn end(mut self, end: End, token: &CancelToken) -> OpResult {
        self.has_ended = true;
        match end {
            End::Success => Ok(Value::make()),
            End::Error => {
                token.check()?;
                Err(Trouble::Own(Value::make()))
            }
            End::Panic => {
                count(&PANICKED);
                panic_any(Value::make())
            }
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let tally = &TALLIES[self.way as usize];
        count(if self.has_ended {
            &tally.ended
        } else {
            &tally.unfinished
        });
    }
}

/// Counts the panics of operations from now on, instead of printing them.
pub(crate) fn count_panics() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload().is::<Value>() {
            count(&SHOWN);
        } else {
            others(info);
        }
    }));
}

/// Reports a breach for each sum that does not add up.
pub(crate) fn audit() {
    let (made, handed_out, dropped) = (read(&MADE), read(&HANDED_OUT), read(&DROPPED));
    if made != handed_out + dropped {
        breach(format!(
            "{made} values were made, {handed_out} handed out, {dropped} dropped"
        ));
    }
    let (panicked, shown) = (read(&PANICKED), read(&SHOWN));
    if panicked != shown {
        breach(format!(
            "{panicked} operations panicked, the hook saw {shown}"
        ));
    }
}

pub(crate) fn print() {
    println!(
        "values: {} made = {} handed out + {} dropped by the runtime; panics: {}, each seen by the hook",
        read(&MADE),
        read(&HANDED_OUT),
        read(&DROPPED),
        read(&PANICKED)
    );
}
