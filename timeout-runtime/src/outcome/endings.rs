//! The table of endings: how a call can end, and its name in each type that says so.

/// Passes the table to the macro `$generate`. A row has, for one ending:
///
/// - what [`Outcome`](crate::Outcome) says, and the type of its value: without a result, that is a
///   [`TimeoutError`](crate::TimeoutError);
/// - what [`CallStatus`](crate::CallStatus) says;
/// - what [`EventKind`](crate::EventKind) says;
/// - without a result: each [`Cause`](crate::Cause) that leads to it once the operation has started;
/// - its word in logs, metrics and traces;
/// - its text in errors and events, after the name of the call.
///
/// A row that is only in events has its kind, word and text.
macro_rules! endings {
    ($generate:ident) => {
        $generate! {
            with_result {
                /// The operation returned a value in time.
                Success(T), Ok, Succeeded, "succeeded", "succeeded";
                /// The operation failed in time: it returned its own error, or panicked.
                Failure(E), Failed, Failed, "failed", "failed";
            }
            without_result {
                /// The call's own limit passed first.
                TimedOut, TimedOut, TimedOut, [TimedOut], "timed_out", "timed out";
                /// An inherited or shared deadline passed first.
                DeadlineExceeded, DeadlineExceeded, DeadlineExceeded, [DeadlineExceeded],
                    "deadline_exceeded", "ran past its caller's deadline";
                /// A token was cancelled first.
                Cancelled, UpstreamCancelled, Cancelled, [Cancelled],
                    "cancelled", "was cancelled";
                /// The operation never ran.
                NotStarted, NotStarted, NotStarted, [NoWorker, NoRuntime],
                    "not_started", "was not started";
            }
            only_in_events {
                Dropped, "dropped", "was dropped";
                AbandonedWorkerSucceeded, "abandoned_succeeded", "abandoned, succeeded";
                AbandonedWorkerStopped, "abandoned_stopped", "abandoned, stopped";
                AbandonedWorkerFailed, "abandoned_failed", "abandoned, failed";
            }
        }
    };
}

pub(crate) use endings;
