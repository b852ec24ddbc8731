//! [`Event`]: what a listener receives when a call ends, or when an abandoned operation ends after
//! its call.

pub(crate) mod clock;
pub(crate) mod listener;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::one_line::OneLine;
use crate::outcome::{CallStatus, Cause, Rounded, endings};
use crate::sync::{AtomicU64, const_thread_local};

/// The id of a call, unique within the process. It converts into a `u64`.
///
/// The ids of the calls that one thread starts increase. Those of different threads say nothing
/// about the order of their calls.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timeout_runtime::{add_listener, within_blocking};
///
/// let (sender, ids) = mpsc::channel();
/// let _listener = add_listener(move |event| sender.send(event.call).unwrap());
/// for _ in 0..2 {
///     within_blocking(Duration::from_secs(60), |_token| ())?;
/// }
/// let (first, second) = (ids.recv()?, ids.recv()?);
/// assert_ne!(first, second);
/// assert_eq!(first.to_string(), format!("#{}", u64::from(first)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(NonZeroU64);

/// How many ids a thread takes from the shared counter at a time, so that threads rarely write to
/// it.
const IDS_PER_BLOCK: u64 = 64;

const_thread_local! {
    /// The ids that this thread has taken and not used.
    static IDS: Cell<(u64, u64)> = Cell::new((0, 0));
}

impl CallId {
    #[inline]
    pub(crate) fn fresh() -> Self {
        IDS.with(|ids| {
            let (mut next, mut end) = ids.get();
            if next == end {
                next = Self::fresh_block();
                end = next.saturating_add(IDS_PER_BLOCK);
            }
            ids.set((next + 1, end));
            Self(NonZeroU64::MIN.saturating_add(next))
        })
    }

    #[cold]
    fn fresh_block() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);

        NEXT.fetch_add(IDS_PER_BLOCK, Ordering::Relaxed)
    }
}

impl From<CallId> for u64 {
    fn from(id: CallId) -> Self {
        id.0.get()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The name of a worker thread, such as `timeout-7`.
///
/// ```
/// use std::sync::mpsc;
/// use std::thread;
/// use std::time::Duration;
/// use timeout_runtime::{add_listener, within_blocking};
///
/// let (sender, workers) = mpsc::channel();
/// let _listener = add_listener(move |event| sender.send(event.worker).unwrap());
/// let thread = within_blocking(Duration::from_secs(60), |_token| {
///     thread::current().name().map(str::to_owned)
/// })?;
/// let worker = workers.recv()?.expect("the call ran on a worker");
/// assert_eq!(thread, Some(worker.to_string()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerName(pub(crate) u32);

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timeout-{}", self.0)
    }
}

/// How an operation failed.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timeout_runtime::{EventKind, Failure, Timeout};
///
/// let (sender, errors) = mpsc::channel();
/// let parse = Timeout::new("parse", Duration::from_secs(60))?.with_listener(move |event| {
///     if let EventKind::Failed(Failure::Error(text)) = &event.kind {
///         sender.send(text.to_string()).unwrap();
///     }
/// });
/// assert!(parse.outcome(|_token| "x".parse::<u32>()).success().is_none());
/// assert_eq!(errors.recv()?, "ParseIntError { kind: InvalidDigit }");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// The operation returned an error. Holds its `Debug` text.
    Error(Cow<'a, str>),
    /// The operation panicked. Holds the panic message.
    Panic(Cow<'a, str>),
    /// The operation was dropped before it finished, for example by a runtime's shutdown.
    Unfinished,
}

impl Failure<'_> {
    fn into_owned(self) -> Failure<'static> {
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

/// The kind of an event: an outcome, or the late end of an abandoned operation.
///
/// ```
/// use timeout_runtime::{Cause, EventKind};
///
/// /// Whether more workers, or fewer abandoned operations, would have helped.
/// fn lacks_workers(kind: &EventKind<'_>) -> bool {
///     matches!(kind, EventKind::NotStarted(Cause::NoWorker))
/// }
///
/// assert!(lacks_workers(&EventKind::NotStarted(Cause::NoWorker)));
/// assert!(!lacks_workers(&EventKind::NotStarted(Cause::Cancelled)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// The operation returned a value in time.
    Succeeded,
    /// The operation returned an error or panicked in time.
    Failed(Failure<'a>),
    /// The call's own limit passed first.
    TimedOut,
    /// An inherited or shared deadline passed first.
    DeadlineExceeded,
    /// A token was cancelled first.
    Cancelled,
    /// The operation never ran.
    NotStarted(Cause),
    /// The call's future was dropped before the call ended.
    Dropped,
    /// An operation returned a value after its call had ended. The late result was dropped, or
    /// passed to `on_late`.
    AbandonedWorkerSucceeded,
    /// An operation stopped after its call had ended, because of its cancellation.
    ///
    /// The operation returned an error or `None` after it had received the error of its cancelled
    /// token, from [`check`](crate::CancelToken::check) for example, or from a nested call that was
    /// cancelled too. Or it is a task that was cancelled, and was then destroyed unfinished.
    /// `Display` leaves the text of the failure out.
    AbandonedWorkerStopped(Failure<'a>),
    /// An operation panicked after its call had ended, or returned an error or `None` although it
    /// had not received the error of its token.
    AbandonedWorkerFailed(Failure<'a>),
}

macro_rules! names_of_events {
    (
        with_result {
            $($(#[$doc:meta])* $result:ident($value:ty), $status:ident, $event:ident, $word:literal,
                $text:literal;)*
        }
        without_result {
            $($(#[$why:meta])* $none:ident, $none_status:ident, $none_event:ident,
                [$($cause:ident),*], $none_word:literal, $none_text:literal;)*
        }
        only_in_events {
            $($only:ident, $only_word:literal, $only_text:literal;)*
        }
    ) => {
        impl EventKind<'_> {
            /// Returns the status of the call if the event reports how the call ended.
            ///
            /// Returns `None` for [`Dropped`](Self::Dropped), and for the late event of an
            /// abandoned operation.
            ///
            /// ```
            /// use timeout_runtime::{CallStatus, EventKind};
            ///
            /// assert_eq!(EventKind::TimedOut.status(), Some(CallStatus::TimedOut));
            /// assert_eq!(EventKind::AbandonedWorkerSucceeded.status(), None);
            /// ```
            #[must_use]
            pub fn status(&self) -> Option<CallStatus> {
                match self {
                    $(Self::$event { .. } => Some(CallStatus::$status),)*
                    $(Self::$none_event { .. } => Some(CallStatus::$none_status),)*
                    $(Self::$only { .. })|* => None,
                }
            }

            /// Returns the kind as a fixed word, as written by the features `metrics` and
            /// `tracing`.
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
                    $(Self::$event { .. } => $word,)*
                    $(Self::$none_event { .. } => $none_word,)*
                    $(Self::$only { .. } => $only_word,)*
                }
            }

            /// The text of the kind in `Display`.
            fn text(&self) -> &'static str {
                match self {
                    $(Self::$event { .. } => $text,)*
                    $(Self::$none_event { .. } => $none_text,)*
                    $(Self::$only { .. } => $only_text,)*
                }
            }
        }
    };
}

endings!(names_of_events);

impl EventKind<'_> {
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
            Self::AbandonedWorkerStopped(failure) => {
                EventKind::AbandonedWorkerStopped(failure.into_owned())
            }
            Self::AbandonedWorkerFailed(failure) => {
                EventKind::AbandonedWorkerFailed(failure.into_owned())
            }
        }
    }
}

/// The report of an outcome or of a late end. `Display` prints it on one line.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use timeout_runtime::{Timeout, add_listener};
///
/// let (sender, events) = mpsc::channel();
/// let _listener = add_listener(move |event| sender.send(event.clone().into_owned()).unwrap());
///
/// let parse = Timeout::new("parse", Duration::from_secs(60))?;
/// assert_eq!(parse.outcome(|_token| "12".parse::<u32>()).success(), Some(12));
/// let event = events.recv()?;
/// assert_eq!((event.name, event.limit), ("parse", Some(Duration::from_secs(60))));
/// println!("{event}"); // `parse` #1 succeeded after 52µs (limit 60s) on timeout-1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The time of the event: the system time, or that of
    /// [`Timeout::with_clock`](crate::Timeout::with_clock).
    pub timestamp: SystemTime,
    /// The id of the call.
    pub call: CallId,
    /// The name of the call.
    pub name: &'static str,
    /// The worker thread that the operation ran on, if it ran on one.
    pub worker: Option<WorkerName>,
    /// The time since the call's start, on the monotonic clock of its deadline.
    ///
    /// For a result, also a late one, it is the time at which the operation ended. For every other
    /// outcome, it is the time at which the caller stopped waiting. It can be off by some
    /// milliseconds if a listener is added between the end of the operation and the event.
    pub elapsed: Duration,
    /// The call's own limit, if it has one.
    pub limit: Option<Duration>,
    /// The kind of the event.
    pub kind: EventKind<'a>,
}

impl Event<'_> {
    /// Converts to an event that borrows nothing.
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
        let (kind, elapsed) = (self.kind.text(), Rounded(self.elapsed));
        write!(f, "`{}` {} {kind}", OneLine(self.name), self.call)?;
        match &self.kind {
            EventKind::NotStarted(cause) => write!(f, ": {cause}")?,
            EventKind::Failed(failure) | EventKind::AbandonedWorkerFailed(failure) => {
                write!(f, " after {elapsed}: {failure}")?;
            }
            _ => write!(f, " after {elapsed}")?,
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
