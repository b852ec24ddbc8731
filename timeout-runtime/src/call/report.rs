//! [`Report`]: the operation's own account of its end, and what it is made of.

use std::fmt::Debug;
use std::sync::Mutex;

use crate::event::{EventKind, Failure};
use crate::returns::Ending;
use crate::sync::lock;
use crate::terms::Terms;
use crate::tick::Tick;
use crate::unwind::{self, Payload};

/// How an operation tells an answer from an error.
pub(crate) type Classify<R> = for<'a> fn(&'a R) -> Ending<'a>;

/// What is found out about an operation that has ended.
pub(crate) struct Found<'a> {
    terms: &'a Terms,
    at: Option<Tick>,
    fault: Option<Fault>,
}

impl<'a> Found<'a> {
    /// Nothing so far about an operation of a call with these terms.
    pub(crate) fn nothing(terms: &'a Terms) -> Self {
        Self {
            terms,
            at: None,
            fault: None,
        }
    }

    /// The operation has ended right now, by its own clock, or at a glance where that is enough: nobody is told the time, and the deadline is
    /// far. Called before `means`, which may take its time to find out.
    pub(crate) fn ended(&mut self) {
        let is_unhurried = !self.terms.policy().has_listeners() && self.terms.is_clearly_ahead();
        self.at = Some(if is_unhurried {
            Tick::now_coarse()
        } else {
            self.terms.now()
        });
    }

    /// What its value means.
    pub(crate) fn means(&mut self, ending: Ending<'_>) {
        self.fault = match ending {
            Ending::Answer => None,
            Ending::Error(error) => {
                let heard = self.terms.policy().has_listeners();
                Some(Fault::Error(error_failure(error, heard)))
            }
            Ending::Nothing => Some(Fault::Nothing),
        };
    }

    /// The operation's own account of how it has ended: by `panic`, or as was found.
    pub(crate) fn report(self, panic: Option<&Payload>) -> Report {
        let heard = self.terms.policy().has_listeners();
        let fault = match panic {
            Some(payload) => Some(Fault::Panic(panic_failure(payload, heard))),
            None => self.fault,
        };
        Report::new(self.at.unwrap_or_else(|| self.terms.now()), fault)
    }
}

/// The operation's own account of its end.
pub(crate) struct Report {
    pub(super) at: Tick,
    /// Unless there was an answer.
    fault: Option<Box<Fault>>,
}

/// What there was in place of an answer.
pub(super) enum Fault {
    Nothing,
    Error(Failure<'static>),
    Panic(Failure<'static>),
}

impl Report {
    fn new(at: Tick, fault: Option<Fault>) -> Self {
        Self {
            at,
            fault: fault.map(Box::new),
        }
    }

    /// Of an operation that was destroyed before it had ended.
    #[cfg(feature = "tokio")]
    pub(super) fn unfinished(at: Tick) -> Self {
        Self::new(at, Some(Fault::Error(Failure::Unfinished)))
    }

    pub(super) fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref()
    }

    pub(super) fn is_unfinished(&self) -> bool {
        matches!(
            self.fault.as_deref(),
            Some(Fault::Error(Failure::Unfinished))
        )
    }

    /// What listeners are told if it counted.
    pub(super) fn in_time(self) -> EventKind<'static> {
        match self.fault.map(|fault| *fault) {
            None | Some(Fault::Nothing) => EventKind::Succeeded,
            Some(Fault::Error(failure) | Fault::Panic(failure)) => EventKind::Failed(failure),
        }
    }

    /// What they are told if it came late, where no value counts like an error.
    pub(super) fn late(self) -> EventKind<'static> {
        let failure = match self.fault.map(|fault| *fault) {
            None => return EventKind::AbandonedWorkerSucceeded,
            Some(Fault::Nothing) => Failure::Error("None".into()),
            Some(Fault::Error(failure) | Fault::Panic(failure)) => failure,
        };
        EventKind::AbandonedWorkerFailed(failure)
    }
}

/// Where the operation leaves its report if its answer does not count.
pub(crate) trait LateReport {
    fn put(&self, report: Report);
    fn take(&self) -> Option<Report>;
}

impl LateReport for Mutex<Option<Report>> {
    fn put(&self, report: Report) {
        *lock(self) = Some(report);
    }

    fn take(&self) -> Option<Report> {
        lock(self).take()
    }
}

fn panic_failure(payload: &Payload, heard: bool) -> Failure<'static> {
    Failure::Panic(if heard {
        unwind::text(payload).to_owned().into()
    } else {
        "".into()
    })
}

/// An error's text is somebody else's code, and is asked for only if it is heard.
fn error_failure(error: &dyn Debug, heard: bool) -> Failure<'static> {
    if !heard {
        return Failure::Error("".into());
    }
    let text = unwind::catch(|| format!("{error:?}")).unwrap_or_else(|payload| {
        unwind::drop_catching(payload);
        "an error whose `Debug` panics".to_owned()
    });
    Failure::Error(text.into())
}
