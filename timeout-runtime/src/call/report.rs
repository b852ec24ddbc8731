//! [`Report`]: when and how an operation ended.

use std::fmt::Debug;
use std::sync::Mutex;

use crate::context::frame;
use crate::event::{EventKind, Failure};
use crate::outcome::Returned;
use crate::sync::lock;
use crate::terms::Terms;
use crate::time::Tick;
use crate::unwind::{self, Payload};

/// Classifies the value that an operation returned.
pub(crate) type Classify<R> = for<'a> fn(&'a R) -> Returned<'a>;

/// Whether the operation returned a value. If classifying it panics, this returns `false`: the
/// panic recurs when the outcome is decided.
#[inline]
pub(super) fn is_value<R>(value: &R, classify: Classify<R>) -> bool {
    match unwind::catch(|| frame::outside(|| classify(value))) {
        Ok(returned) => matches!(returned, Returned::Value),
        Err(panic) => {
            unwind::drop_catching(panic);
            false
        }
    }
}

/// Builds the report of an operation that has ended.
pub(crate) struct ReportBuilder<'a> {
    terms: &'a Terms,
    at: Option<Tick>,
    fault: Option<Fault>,
}

impl<'a> ReportBuilder<'a> {
    /// For an operation of a call with these terms.
    pub(crate) fn new(terms: &'a Terms) -> Self {
        Self {
            terms,
            at: None,
            fault: None,
        }
    }

    /// Records that the operation has ended now. Called before `record_returned`, which may run
    /// slow user code.
    ///
    /// Without listeners, and with a deadline that is far away, a coarse clock reading is enough.
    pub(crate) fn record_end(&mut self) {
        let is_coarse_enough =
            !self.terms.policy().has_listeners() && self.terms.is_clearly_ahead();
        self.at = Some(if is_coarse_enough {
            Tick::now_coarse()
        } else {
            self.terms.now()
        });
    }

    /// Records how the operation ended, except for a panic.
    pub(crate) fn record_returned(&mut self, returned: Returned<'_>) {
        self.fault = match returned {
            Returned::Value => None,
            Returned::Error(error) => {
                let has_listeners = self.terms.policy().has_listeners();
                Some(Fault::Error(error_failure(error, has_listeners)))
            }
            Returned::Nothing => Some(Fault::NoValue),
        };
    }

    /// The report. A `panic` takes precedence over what the operation returned.
    pub(crate) fn build(self, panic: Option<&Payload>) -> Report {
        let has_listeners = self.terms.policy().has_listeners();
        let fault = match panic {
            Some(payload) => Some(Fault::Panic(panic_failure(payload, has_listeners))),
            None => self.fault,
        };
        Report::new(self.at.unwrap_or_else(|| self.terms.now()), fault)
    }
}

/// When and how an operation ended.
pub(crate) struct Report {
    pub(super) at: Tick,
    /// `None` for a success.
    fault: Option<Box<Fault>>,
}

/// How an operation failed. `NoValue` is the `None` of an `Option`.
pub(super) enum Fault {
    NoValue,
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

    /// The report of an operation that was destroyed unfinished.
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

    /// The event if the result counts.
    pub(super) fn into_event(self) -> EventKind<'static> {
        match self.fault.map(|fault| *fault) {
            None | Some(Fault::NoValue) => EventKind::Succeeded,
            Some(Fault::Error(failure) | Fault::Panic(failure)) => EventKind::Failed(failure),
        }
    }

    /// The event if the result is late. A missing value counts as an error here. `has_stopped`
    /// says that the operation had received the error of its token.
    pub(super) fn into_late_event(self, has_stopped: bool) -> EventKind<'static> {
        let failure = match self.fault.map(|fault| *fault) {
            None => return EventKind::AbandonedWorkerSucceeded,
            Some(Fault::Panic(failure)) => return EventKind::AbandonedWorkerFailed(failure),
            Some(Fault::NoValue) => Failure::Error("None".into()),
            Some(Fault::Error(failure)) => failure,
        };
        if has_stopped {
            EventKind::AbandonedWorkerStopped(failure)
        } else {
            EventKind::AbandonedWorkerFailed(failure)
        }
    }
}

/// Stores the report of an operation whose result does not count.
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

fn panic_failure(payload: &Payload, has_listeners: bool) -> Failure<'static> {
    Failure::Panic(if has_listeners {
        unwind::text(payload).to_owned().into()
    } else {
        "".into()
    })
}

/// Formatting an error runs user code, so it is skipped without listeners.
fn error_failure(error: &dyn Debug, has_listeners: bool) -> Failure<'static> {
    if !has_listeners {
        return Failure::Error("".into());
    }
    let text = unwind::catch(|| format!("{error:?}")).unwrap_or_else(|payload| {
        unwind::drop_catching(payload);
        "an error whose `Debug` panics".to_owned()
    });
    Failure::Error(text.into())
}
