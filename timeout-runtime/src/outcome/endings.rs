//! The table of endings: how a call can end, and its name in each type that says so.

/// Passes the table to the macro `$generate`. A row has, for one ending:
///
/// - what [`Outcome`](crate::Outcome) says, and the type of its value;
/// - what [`CallStatus`](crate::CallStatus) says;
/// - what [`EventKind`](crate::EventKind) says;
/// - each [`Cause`](crate::Cause) that leads to it once the operation has started;
/// - its word in logs, metrics and traces.
macro_rules! endings {
    ($generate:ident) => {
        $generate! {
            /// The operation returned a value in time.
            Success(T), Ok, Succeeded, [], "succeeded";
            /// The operation failed in time: it returned its own error, or panicked.
            Failure(E), Failed, Failed, [], "failed";
            /// The call's own limit passed first.
            TimedOut(TimeoutError), TimedOut, TimedOut, [TimedOut], "timed_out";
            /// An inherited or shared deadline passed first.
            DeadlineExceeded(TimeoutError), DeadlineExceeded, DeadlineExceeded, [DeadlineExceeded],
                "deadline_exceeded";
            /// A token was cancelled first.
            Cancelled(TimeoutError), UpstreamCancelled, Cancelled, [Cancelled], "cancelled";
            /// The operation never ran.
            NotStarted(TimeoutError), NotStarted, NotStarted, [NoWorker, NoRuntime], "not_started";
        }
    };
}

pub(crate) use endings;
