//! One call as its caller sees it, held against what is told of it.

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
use super::operation::{Answer, Job, Trouble, Value};
use super::ways;

/// Whoever cancels calls: a thread of its own.
#[derive(Clone)]
pub(crate) struct Canceller(Sender<(CancelToken, Duration)>);

impl Canceller {
    pub(crate) fn new() -> Self {
        let (sender, told) = mpsc::channel::<(CancelToken, Duration)>();
        thread::spawn(move || {
            for (token, after) in told {
                thread::sleep(after);
                token.cancel();
            }
        });
        Self(sender)
    }

    /// The upstream token of a call, if it has one: always the child of one that outlives them all.
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

/// What the caller got.
enum Got {
    Answer(Answer),
    Panic(Box<dyn Any + Send>),
    /// It has dropped the future.
    Nothing,
}

impl Got {
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Answer(Ok(_)) => Some(Kind::Answer),
            Self::Answer(Err(Trouble::Own(_))) => Some(Kind::Error),
            Self::Answer(Err(Trouble::NoAnswer(error))) => Kind::of_error(error),
            Self::Panic(payload) => payload.is::<Value>().then_some(Kind::Panic),
            Self::Nothing => Some(Kind::Dropped),
        }
    }

    fn receive(self) {
        match self {
            Self::Answer(Ok(value) | Err(Trouble::Own(value))) => value.receive(),
            Self::Panic(payload) => {
                if let Ok(value) = payload.downcast::<Value>() {
                    value.receive();
                }
            }
            Self::Answer(Err(Trouble::NoAnswer(_))) | Self::Nothing => {}
        }
    }
}

/// Holds the ending against what was told of it, and against what it may be.
fn compare(course: &Course, got: &Got) {
    let kind = got.kind();
    let told = ledger::take_verdict();
    if kind != told {
        breach(format!("{course:?}: got {kind:?}, told {told:?}"));
    }
    let own = match course.end {
        End::Answer => Kind::Answer,
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
    ledger::take_verdict();
    let written = course.written;
    let got = match catch_unwind(AssertUnwindSafe(|| ways::call(job, written))) {
        Ok(answer) => Got::Answer(answer),
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
    let mut patience = match course.stop {
        Stop::Drop(after) => Some(Box::pin(tokio::time::sleep(after))),
        _ => None,
    };
    let mut has_begun = false;
    let got = poll_fn(|context| {
        // What is told of the call is told on the thread that polls it last, or drops it.
        ledger::take_verdict();
        let patience = patience.as_mut().filter(|_| has_begun);
        // Asked first: the answer may be there, and nobody looks for it.
        let got = if patience.is_some_and(|patience| patience.as_mut().poll(context).is_ready()) {
            call = None;
            Got::Nothing
        } else {
            let Some(future) = &mut call else {
                unreachable!("it is polled until it is there no more");
            };
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(Poll::Ready(answer)) => Got::Answer(answer),
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
