//! Makes one call as a caller, and compares the result with the call's events.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use timeout_runtime::CancelToken;

use super::course::{Course, End, Stop};
use super::ledger::{self, Kind, breach};
use super::operation::{Job, OpResult, Trouble, Value};
use super::ways;

/// Cancels calls, on a thread of its own.
#[derive(Clone)]
pub(crate) struct Canceller(Sender<(CancelToken, Duration)>);

impl Canceller {
    pub(crate) fn new() -> Self {
        let (sender, requests) = mpsc::channel::<(CancelToken, Duration)>();
        thread::spawn(move || {
            for (token, after) in requests {
                thread::sleep(after);
                token.cancel();
            }
        });
        Self(sender)
    }

    /// The upstream token of a call, if it has one: a child of a token that is never dropped.
    fn upstream(&self, course: &Course) -> Option<CancelToken> {
        static ROOT: LazyLock<CancelToken> = LazyLock::new(CancelToken::new);

        match course.stop {
            Stop::Nothing => None,
            Stop::Limit | Stop::Drop(_) => Some(ROOT.child()),
            Stop::Upstream(after) => {
                let token = ROOT.child();
                self.0.send((token.clone(), after)).ok();
                Some(token)
            }
        }
    }
}

/// What the caller received.
enum Got {
    Returned(OpResult),
    Panic(Box<dyn Any + Send>),
    /// The caller dropped the future.
    Nothing,
}

impl Got {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Returned(Ok(_)) => Some(Kind::Success),
            Self::Returned(Err(Trouble::Own(_))) => Some(Kind::Error),
            Self::Returned(Err(Trouble::NoResult(error))) => Kind::of_error(error),
            Self::Panic(payload) => payload.is::<Value>().then_some(Kind::Panic),
            Self::Nothing => Some(Kind::Dropped),
        }
    }

    fn receive(self) {
        match self {
            Self::Returned(Ok(value) | Err(Trouble::Own(value))) => value.receive(),
            Self::Panic(payload) => {
                if let Ok(value) = payload.downcast::<Value>() {
                    value.receive();
                }
            }
            Self::Returned(Err(Trouble::NoResult(_))) | Self::Nothing => {}
        }
    }
}

/// Compares the caller's result with the outcome event, and with the possible outcomes of the
/// course.
fn compare(course: &Course, got: &Got) {
    let kind = got.kind();
    let event = ledger::take_outcome();
    if kind != event {
        breach(format!("{course:?}: got {kind:?}, event {event:?}"));
    }
    let own = match course.end {
        End::Success => Kind::Success,
        End::Error => Kind::Error,
        End::Panic => Kind::Panic,
    };
    let is_expected = kind == Some(own)
        || match course.stop {
            Stop::Nothing => false,
            Stop::Limit => matches!(kind, Some(Kind::TimedOut | Kind::NotStarted)),
            Stop::Upstream(_) => matches!(kind, Some(Kind::Cancelled | Kind::NotStarted)),
            Stop::Drop(_) => kind == Some(Kind::Dropped),
        };
    if !is_expected {
        breach(format!("{course:?}: {kind:?}"));
    }
}

/// Makes one sync call.
pub(crate) fn call(course: &Course, canceller: &Canceller) {
    let job = Job::new(course, canceller.upstream(course));
    ledger::count_call(course.way);
    ledger::take_outcome();
    let written = course.written;
    let got = match catch_unwind(AssertUnwindSafe(|| ways::call(job, written))) {
        Ok(result) => Got::Returned(result),
        Err(payload) => Got::Panic(payload),
    };
    compare(course, &got);
    got.receive();
}

/// Makes one async call.
pub(crate) async fn call_async(course: &Course, canceller: &Canceller) {
    let job = Job::new(course, canceller.upstream(course));
    ledger::count_call(course.way);
    let mut call = Some(ways::start(job, course.written));
    let mut drop_at = match course.stop {
        Stop::Drop(after) => Some(Box::pin(tokio::time::sleep(after))),
        _ => None,
    };
    let mut has_begun = false;
    let got = poll_fn(|context| {
        // The outcome event is emitted by the thread that polls the call last, or drops it.
        ledger::take_outcome();
        let drop_at = drop_at.as_mut().filter(|_| has_begun);
        // Checked before the call: a published result may then be dropped unread.
        let got = if drop_at.is_some_and(|drop_at| drop_at.as_mut().poll(context).is_ready()) {
            call = None;
            Got::Nothing
        } else {
            let Some(future) = &mut call else {
                unreachable!("polled after the call was dropped");
            };
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(Poll::Ready(result)) => Got::Returned(result),
                Err(payload) => Got::Panic(payload),
                Ok(Poll::Pending) => {
                    if !std::mem::replace(&mut has_begun, true) {
                        context.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
            }
        };
        compare(course, &got);
        Poll::Ready(got)
    })
    .await;
    got.receive();
}
