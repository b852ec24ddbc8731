//! [`Event`]: what is told about a call's ending, and to whom.

pub(crate) mod clock;
pub(crate) mod listener;

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::error::{Cause, Rounded};
use crate::one_line::OneLine;
use crate::policy::Policy;
use crate::sync::AtomicU64;

/// Tells one call from every other of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(NonZeroU64);

impl CallId {
    pub(crate) fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);

        let last = LAST.fetch_add(1, Ordering::Relaxed);
        Self(NonZeroU64::MIN.saturating_add(last))
    }

    /// For a call that begins now, if anybody is to hear of it. Others get a number when they are told or abandoned.
    #[inline]
    pub(crate) fn if_listened_to(policy: &Policy) -> Option<Self> {
        policy.has_listeners().then(Self::fresh)
    }

    /// The number, unique within the process.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The name of a worker thread: `timeout-7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerName(pub(crate) u32);

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timeout-{}", self.0)
    }
}

/// How an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// It returned an error, as its `Debug` prints it.
    Error(Cow<'a, str>),
    /// It panicked, with this message.
    Panic(Cow<'a, str>),
    /// It was destroyed unfinished, as a runtime's shutdown does.
    Unfinished,
}

impl Failure<'_> {
    /// The same with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> Failure<'static> {
        match self {
            Self::Error(text) => Failure::Error(Cow::Owned(text.into_owned())),
            Self::Panic(text) => Failure::Panic(Cow::Owned(text.into_owned())),
            Self::Unfinished => Failure::Unfinished,
        }
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(text) => write!(f, "{}", OneLine(text)),
            Self::Panic(text) => write!(f, "panic: {}", OneLine(text)),
            Self::Unfinished => f.write_str("destroyed unfinished"),
        }
    }
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// An answer in time.
    Succeeded,
    /// An error or a panic in time.
    Failed(Failure<'a>),
    /// The call's own limit passed first.
    TimedOut,
    /// An inherited or shared deadline passed first.
    DeadlineExceeded,
    /// A token was cancelled first.
    Cancelled,
    /// The operation never ran.
    NotStarted(Cause),
    /// The call's future was dropped before it had ended.
    Dropped,
    /// An operation answered after its call had ended; the answer was dropped, or went to `on_late`.
    AbandonedWorkerSucceeded,
    /// An operation failed after its call had ended.
    AbandonedWorkerFailed(Failure<'a>),
}

impl EventKind<'_> {
    /// Whether this event is a call's one ending. `false` for the late report of an abandoned operation.
    #[must_use]
    pub fn is_verdict(&self) -> bool {
        !matches!(
            self,
            Self::AbandonedWorkerSucceeded | Self::AbandonedWorkerFailed(_)
        )
    }

    /// The kind in one word, for machines: the one that the features `metrics` and `tracing` write.
    ///
    /// ```
    /// use timeout_runtime::EventKind;
    ///
    /// assert_eq!(EventKind::TimedOut.as_str(), "timed_out");
    /// assert_eq!(EventKind::AbandonedWorkerSucceeded.as_str(), "abandoned_succeeded");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::TimedOut => "timed_out",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Cancelled => "cancelled",
            Self::NotStarted(_) => "not_started",
            Self::Dropped => "dropped",
            Self::AbandonedWorkerSucceeded => "abandoned_succeeded",
            Self::AbandonedWorkerFailed(_) => "abandoned_failed",
        }
    }

    fn into_owned(self) -> EventKind<'static> {
        match self {
            Self::Succeeded => EventKind::Succeeded,
            Self::Failed(failure) => EventKind::Failed(failure.into_owned()),
            Self::TimedOut => EventKind::TimedOut,
            Self::DeadlineExceeded => EventKind::DeadlineExceeded,
            Self::Cancelled => EventKind::Cancelled,
            Self::NotStarted(cause) => EventKind::NotStarted(cause),
            Self::Dropped => EventKind::Dropped,
            Self::AbandonedWorkerSucceeded => EventKind::AbandonedWorkerSucceeded,
            Self::AbandonedWorkerFailed(failure) => {
                EventKind::AbandonedWorkerFailed(failure.into_owned())
            }
        }
    }
}

/// One thing that happened to one call. `Display` prints it on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// When, by the policy's [`TimestampClock`](crate::TimestampClock).
    pub timestamp: SystemTime,
    /// To which call.
    pub call: CallId,
    /// The call's name.
    pub name: &'static str,
    /// The worker thread that its operation ran on, if it did.
    pub worker: Option<WorkerName>,
    /// How long after the call's start, by the monotonic clock that its limit is kept by: of an answer, and of a late one, when the
    /// operation had ended; of every other ending, when the caller went. Off by some milliseconds if nobody listened when the operation
    /// ended, and somebody did when it was told.
    pub elapsed: Duration,
    /// The call's own limit.
    pub limit: Option<Duration>,
    /// What.
    pub kind: EventKind<'a>,
}

impl Event<'_> {
    /// The same event, to be kept.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        Event {
            timestamp: self.timestamp,
            call: self.call,
            name: self.name,
            worker: self.worker,
            elapsed: self.elapsed,
            limit: self.limit,
            kind: self.kind.into_owned(),
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {} ", OneLine(self.name), self.call)?;
        let elapsed = Rounded(self.elapsed);
        match &self.kind {
            EventKind::Succeeded => write!(f, "succeeded after {elapsed}")?,
            EventKind::Failed(failure) => write!(f, "failed after {elapsed}: {failure}")?,
            EventKind::TimedOut => write!(f, "timed out after {elapsed}")?,
            EventKind::DeadlineExceeded => {
                write!(f, "ran past its caller's deadline after {elapsed}")?;
            }
            EventKind::Cancelled => write!(f, "was cancelled after {elapsed}")?,
            EventKind::NotStarted(cause) => write!(f, "was not started: {cause}")?,
            EventKind::Dropped => write!(f, "was dropped after {elapsed}")?,
            EventKind::AbandonedWorkerSucceeded => {
                write!(f, "abandoned, succeeded after {elapsed}")?;
            }
            EventKind::AbandonedWorkerFailed(failure) => {
                write!(f, "abandoned, failed after {elapsed}: {failure}")?;
            }
        }
        if let Some(limit) = self.limit {
            write!(f, " (limit {limit:?})")?;
        }
        match self.worker {
            Some(worker) => write!(f, " on {worker}"),
            None => Ok(()),
        }
    }
}
