//! The first event decides the cause, and the token, the error and the event report the same one.

use crate::{concurrent, support};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use concurrent::run_concurrently;
use support::{EVERY_WAY, SOON, Way, limit, short_limit};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, EventKind, Failure, Outcome, Timeout,
    TimeoutError,
};

const LONG: Duration = Duration::from_secs(60);

/// The three things that can end a call early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Request,
    Limit,
    Deadline,
}

const ENDS: [End; 3] = [End::Request, End::Limit, End::Deadline];

impl End {
    fn cause(self) -> Cause {
        match self {
            Self::Request => Cause::Cancelled,
            Self::Limit => Cause::TimedOut,
            Self::Deadline => Cause::DeadlineExceeded,
        }
    }
}

type Events = Arc<Mutex<Vec<EventKind<'static>>>>;

/// A policy and the events of its own calls.
fn recorded(name: &'static str, limit: Duration) -> (Timeout, Events) {
    let events = Events::default();
    let sink = Arc::clone(&events);
    let timeout = Timeout::new(name, limit).unwrap();
    let timeout = timeout.with_listener(move |event| {
        sink.lock().unwrap().push(event.clone().into_owned().kind);
    });
    (timeout, events)
}

/// A call with a request token and an enclosing deadline.
struct Call {
    way: Way,
    request: CancelToken,
    deadline: Deadline,
    timeout: Timeout,
    events: Events,
}

/// The token of a call, and tokens derived from it.
struct Kept([CancelToken; 5]);

impl Kept {
    fn of(token: &CancelToken) -> Self {
        let other = CancelToken::new();
        Self([
            token.clone(),
            token.child(),
            token.child().child(),
            CancelToken::linked([&other, token]),
            CancelToken::linked([&token.child(), token]),
        ])
    }

    /// The cause that all tokens agree on, including tokens derived from them now.
    #[track_caller]
    fn cause(&self) -> Cause {
        let Self(tokens) = self;
        let cause = tokens[0].cause();
        for token in tokens {
            let below = [
                token.child(),
                CancelToken::linked([token, &CancelToken::new()]),
            ];
            let checked = token.check().map_err(|error| error.cause()).err();
            assert_eq!([token.cause(), checked], [cause; 2]);
            assert_eq!(below.map(|below| below.cause()), [cause; 2]);
        }
        cause.expect("the token is cancelled")
    }
}

impl Call {
    fn new(way: Way, limit: Duration, deadline: Duration) -> Self {
        let (timeout, events) = recorded("causes_are_kept::call", limit);
        Self {
            way,
            request: CancelToken::new(),
            deadline: Deadline::after(deadline),
            timeout,
            events,
        }
    }

    /// Makes a call that keeps derived tokens, runs `meanwhile` and then sends the tokens. Returns
    /// the call's error.
    fn run(
        &self,
        meanwhile: impl FnOnce(&CancelToken) + Send + 'static,
    ) -> (TimeoutError, mpsc::Receiver<Kept>) {
        let (sender, receiver) = mpsc::channel();
        let context = CallContext::detached()
            .with_token(&self.request)
            .with_deadline(self.deadline);
        let outcome = context.run(|| {
            self.way.run(&self.timeout, move |token| {
                let kept = Kept::of(&token);
                meanwhile(&token);
                sender.send(kept).unwrap();
                Err::<(), _>("stopped")
            })
        });
        let error = outcome.timeout_error().cloned();
        (error.unwrap_or_else(|| panic!("{outcome:?}")), receiver)
    }

    /// All events of the call: its outcome, and the late event of its operation.
    fn all_events(&self) -> Vec<EventKind<'static>> {
        support::eventually("the late event is emitted", || {
            self.events.lock().unwrap().len() >= 2
        });
        self.events.lock().unwrap().clone()
    }

    /// Asserts that the outcome event, the error and all tokens have the same cause, and returns
    /// it.
    #[track_caller]
    fn agreed(&self, error: &TimeoutError, kept: &Kept) -> Cause {
        let way = self.way;
        // Reading the causes checks the token, which the late event must not see.
        let events = self.all_events();
        let cause = kept.cause();
        assert_eq!(error.cause(), cause, "{way:?}");
        let (status, event) = match cause {
            Cause::TimedOut => (CallStatus::TimedOut, EventKind::TimedOut),
            Cause::DeadlineExceeded => (CallStatus::DeadlineExceeded, EventKind::DeadlineExceeded),
            _ => (CallStatus::UpstreamCancelled, EventKind::Cancelled),
        };
        assert_eq!(error.status(), status, "{way:?}");
        let failed = Failure::Error("\"stopped\"".into());
        assert_eq!(
            events,
            [event, EventKind::AbandonedWorkerFailed(failed)],
            "{way:?}"
        );
        cause
    }
}

fn rows<T: Copy + Send + Sync>(others: &[T]) -> Vec<(Way, T)> {
    let with = |way| others.iter().map(move |&other| (way, other));
    EVERY_WAY.into_iter().flat_map(with).collect()
}

/// A cancellation by user code must not read as a timeout, nor the reverse.
#[test]
fn each_event_that_ends_a_call_has_its_own_cause() {
    let rows = rows(&ENDS);
    run_concurrently(rows.len(), rows.len(), |row| {
        let (way, end) = rows[row];
        let soon = 2 * short_limit();
        let after = |this| if this == end { soon } else { LONG };
        let call = Call::new(way, after(End::Limit), after(End::Deadline));
        let request = call.request.clone();
        let (error, kept) = call.run(move |token| {
            if end == End::Request {
                let late = thread::spawn(move || {
                    thread::sleep(soon);
                    request.cancel();
                });
                assert!(token.wait_timeout(SOON).is_some());
                late.join().unwrap();
            }
            assert!(token.wait_timeout(SOON).is_some(), "{way:?}: {end:?}");
        });
        let kept = kept.recv_timeout(SOON).unwrap();
        assert_eq!(call.agreed(&error, &kept), end.cause(), "{way:?}: {end:?}");
    });
}

/// A later end used to overwrite the cause. The operation runs until all ends have come.
#[test]
fn a_later_event_does_not_change_the_cause() {
    let rows = rows(&ENDS);
    run_concurrently(rows.len(), rows.len(), |row| {
        let (way, end) = rows[row];
        let (soon, later) = (2 * short_limit(), 4 * short_limit());
        let after = |this| if this == end { soon } else { later };
        let call = Call::new(way, after(End::Limit), after(End::Deadline));
        let request = call.request.clone();
        let (error, kept) = call.run(move |token| {
            if end == End::Request {
                request.cancel();
            }
            let first = token.wait_timeout(SOON);
            thread::sleep(Duration::from_millis(1));
            request.cancel_with("too late");
            token.cancel_with("too late");
            thread::sleep(later);
            assert_eq!(token.cause(), first, "{way:?}: {end:?}");
        });
        let kept = kept.recv_timeout(SOON).unwrap();
        assert_eq!(call.agreed(&error, &kept), end.cause(), "{way:?}: {end:?}");
        let source = std::error::Error::source(&error);
        assert!(source.is_none(), "{way:?}: {end:?}: {source:?}");
    });
}

/// When several ends came within one millisecond, the error used to name one, and a token or the
/// event another.
#[test]
fn simultaneous_events_have_one_cause() {
    const ROUNDS: usize = 100;
    let own_limit = 2 * short_limit();
    let shortly_before = own_limit.saturating_sub(Duration::from_millis(1));
    let started = AtomicUsize::new(0);
    run_concurrently(20, ROUNDS, |round| {
        let way = EVERY_WAY[round / 20];
        let call = Call::new(way, own_limit, own_limit);
        let step = Duration::from_micros(100 * (round as u64 % 20));
        let at = Instant::now() + shortly_before + step;
        let request = call.request.clone();
        let canceller = thread::spawn(move || {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            request.cancel();
        });
        let (error, kept) = call.run(|token| {
            assert!(token.wait_timeout(SOON).is_some());
        });
        canceller.join().unwrap();
        if error.status() != CallStatus::NotStarted {
            started.fetch_add(1, Ordering::Relaxed);
            call.agreed(&error, &kept.recv_timeout(SOON).unwrap());
        }
    });
    assert!(
        started.into_inner() > ROUNDS / 2,
        "hardly any call was started"
    );
}

#[test]
fn simultaneous_cancellations_have_one_reason() {
    for _ in 0..500 {
        let parents = [CancelToken::new(), CancelToken::new()];
        let (below, both) = (CancelToken::linked(&parents), Barrier::new(2));
        let child = below.child();
        thread::scope(|scope| {
            for (parent, reason) in parents.iter().zip(["one", "two"]) {
                let both = &both;
                scope.spawn(move || {
                    both.wait();
                    parent.cancel_with(reason);
                });
            }
        });
        let reason = |token: &CancelToken| {
            let error = token.check().unwrap_err();
            std::error::Error::source(&error).unwrap().to_string()
        };
        assert_eq!(parents.each_ref().map(reason), ["one", "two"]);
        assert_eq!(reason(&below), reason(&child.child()));
        assert_eq!(reason(&below), reason(&child));
    }
}

/// A very short limit used to hide an earlier cancellation.
#[test]
fn a_cancellation_before_the_call_is_the_cause_even_with_a_short_limit() {
    for way in EVERY_WAY {
        let request = CancelToken::new();
        request.cancel();
        let (timeout, events) = recorded("causes_are_kept::short", Duration::from_millis(1));
        let context = CallContext::detached()
            .with_token(&request)
            .with_deadline(Deadline::after(Duration::ZERO));
        let outcome = context.run(|| way.run(&timeout, |_| Ok::<_, TimeoutError>(())));
        let Outcome::NotStarted(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert_eq!(error.cause(), Cause::Cancelled, "{way:?}");
        let kinds = events.lock().unwrap().clone();
        assert_eq!(kinds, [EventKind::NotStarted(Cause::Cancelled)], "{way:?}");
    }
}

/// An operation's own error used to be taken for the call's outcome because it looked like one.
#[test]
fn an_operations_own_timeout_error_stays_a_failure() {
    let elsewhere = CancelToken::new();
    elsewhere.cancel_with("shutting down");
    let cancelled = elsewhere.check().unwrap_err();
    let brief = limit("causes_are_kept::elsewhere", 1);
    let timed_out = brief
        .inline()
        .outcome(|token| {
            let _ = token.wait_timeout(SOON);
            Err::<(), _>(())
        })
        .timeout_error()
        .cloned()
        .unwrap();
    for way in EVERY_WAY {
        for error in [&cancelled, &timed_out] {
            let (timeout, events) = recorded("causes_are_kept::looks", LONG);
            let (sender, token) = mpsc::channel();
            let own = error.clone();
            let outcome = way.run(&timeout, move |token| {
                sender.send(token).unwrap();
                Err::<(), _>(own)
            });
            let text = format!("{error:?}");
            let Outcome::Failure(found) = outcome else {
                panic!("{way:?}: {outcome:?}");
            };
            assert_eq!(format!("{found:?}"), text, "{way:?}");
            assert_eq!(token.recv().unwrap().cause(), None, "{way:?}");
            let kinds = events.lock().unwrap().clone();
            let failed = EventKind::Failed(Failure::Error(text.into()));
            assert_eq!(kinds, [failed], "{way:?}");
        }
    }
}
