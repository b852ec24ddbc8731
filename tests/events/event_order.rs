//! The outcome event comes first, the return second and the late event third.

use crate::support;
use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use support::{
    ABANDONING, ASYNC, Drops, EVERY_WAY, Gate, LONG, SOON, TIMED, Way, assert_timed_out, limit,
    past_short, poll_once, record, short, short_limit, until_cancelled,
};
use timeout_runtime::{
    CallStatus, CancelToken, Cause, EventKind, Failure, Outcome, Timeout, TimeoutError, workers,
};

type Op = fn(CancelToken) -> Result<u32, TimeoutError>;

#[test]
fn the_outcome_event_is_delivered_before_the_call_returns() {
    let succeeds: Op = |_| Ok(7);
    let cancels: Op = |token| {
        token.cancel();
        token.check().map(|()| 7)
    };
    let stops: Op = |token| until_cancelled(&token);
    for way in EVERY_WAY {
        for (ms, op, expected) in [
            (LONG, succeeds, EventKind::Succeeded),
            (LONG, cancels, EventKind::Cancelled),
            (short(), stops, EventKind::TimedOut),
        ] {
            let recorder = record("event_order::first");
            let _ = way.run(&limit("event_order::first", ms), op);
            let events = recorder.kinds();
            assert_eq!(events.first(), Some(&expected), "{way:?}");
            if events[0] != EventKind::Succeeded {
                // Wait for the late event, so that the next round does not receive it.
                recorder.wait_for(2);
            }
        }
    }
}

/// A listener on `timeout` that records the cause in the call's token at each event.
fn with_token_seen(timeout: Timeout) -> (Timeout, mpsc::Sender<CancelToken>, Seen) {
    let (sender, token) = mpsc::channel();
    let seen = Seen::default();
    let (sink, token, found) = (seen.clone(), Mutex::new(token), Mutex::new(None));
    let timeout = timeout.with_listener(move |event| {
        let mut found = found.lock().unwrap();
        let token: &CancelToken =
            found.get_or_insert_with(|| token.lock().unwrap().recv_timeout(SOON).unwrap());
        sink.0
            .lock()
            .unwrap()
            .push((!support::is_late(&event.kind), token.cause()));
    });
    (timeout, sender, seen)
}

/// Observations, one for each event.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Sight>>>);

/// Whether the event is an outcome event, and the cause in the token at that time.
type Sight = (bool, Option<Cause>);

impl Seen {
    fn first(&self) -> Sight {
        self.0.lock().unwrap()[0]
    }
}

#[test]
fn the_token_is_cancelled_before_the_outcome_event() {
    for way in EVERY_WAY {
        let (timeout, sender, seen) = with_token_seen(limit("event_order::cancelled", short()));
        let _ = way.run(&timeout, move |token| {
            sender.send(token.clone()).unwrap();
            until_cancelled(&token)
        });
        assert_eq!(seen.first(), (true, Some(Cause::TimedOut)), "{way:?}");
    }
}

/// The token must be cancelled even if the operation never checks it.
#[test]
fn an_ignored_token_is_cancelled_before_the_outcome_event() {
    for way in TIMED {
        let gate = Gate::new();
        let held = gate.clone();
        let (timeout, sender, seen) = with_token_seen(limit("event_order::ignored", short()));
        let _ = way.run(&timeout, move |token| {
            sender.send(token).unwrap();
            if way.abandons() {
                held.wait();
            } else {
                std::thread::sleep(past_short());
            }
            Ok::<_, TimeoutError>(7)
        });
        assert_eq!(seen.first(), (true, Some(Cause::TimedOut)), "{way:?}");
        gate.open();
    }
}

#[test]
fn the_token_of_a_dropped_call_is_cancelled_before_the_event() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let (timeout, sender, seen) = with_token_seen(limit("event_order::dropped_token", LONG));
        let running = Gate::new();
        let started = running.clone();
        let mut call = way.start(&timeout, move |token| async move {
            sender.send(token.clone()).unwrap();
            started.open();
            token.cancelled().await;
            Ok::<_, TimeoutError>(7)
        });
        assert!(poll_once(&mut call, &Gate::new()).is_pending(), "{way:?}");
        running.wait();
        drop(call);
        assert_eq!(seen.first(), (true, Some(Cause::Cancelled)), "{way:?}");
    }
}

#[test]
fn an_operation_that_ends_after_the_return_emits_a_late_event() {
    for way in ABANDONING {
        let recorder = record("event_order::after");
        let gate = Gate::new();
        let held = gate.clone();
        let _ = way.run(&limit("event_order::after", short()), move |_| {
            held.wait();
            Ok::<_, TimeoutError>(7)
        });
        assert_eq!(recorder.kinds(), [EventKind::TimedOut], "{way:?}");
        gate.open();
        assert_eq!(
            recorder.wait_for(2),
            [EventKind::TimedOut, EventKind::AbandonedWorkerSucceeded],
            "{way:?}"
        );
        let events = recorder.events();
        assert_eq!(events[0].call, events[1].call, "{way:?}");
        assert!(events[0].elapsed <= events[1].elapsed, "{way:?}");
        assert!(events[0].timestamp <= events[1].timestamp, "{way:?}");
        assert_eq!(events[1].limit, Some(short_limit()), "{way:?}");
        let on_worker = way != Way::AsyncTask;
        assert_eq!(events[1].worker.is_some(), on_worker, "{way:?}");
    }
}

/// An operation used to count as abandoned until all listeners had returned from its late event,
/// so a retry on that event could be refused.
#[test]
fn an_operation_leaves_the_abandoned_list_before_its_late_event() {
    const NAME: &str = "event_order::retry";
    for way in ABANDONING {
        let (sender, seen) = mpsc::channel();
        let sender = Mutex::new(sender);
        let _listener = timeout_runtime::add_listener(move |event| {
            if event.name != NAME || !support::is_late(&event.kind) {
                return;
            }
            let mut abandoned = workers::abandoned().into_iter();
            let is_listed = abandoned.any(|left| left.name == NAME);
            let retry = limit(NAME, LONG).with_max_abandoned(1);
            let retried = retry.inline().outcome(|_| Ok::<_, TimeoutError>(()));
            let sight = (is_listed, retried.status() == CallStatus::Ok);
            sender.lock().unwrap().send(sight).unwrap();
        });
        let gate = Gate::new();
        let held = gate.clone();
        let _ = way.run(&limit(NAME, short()), move |_| {
            held.wait();
            Ok::<_, TimeoutError>(7)
        });
        gate.open();
        assert_eq!(seen.recv_timeout(SOON), Ok((false, true)), "{way:?}");
    }
}

/// The operation returns its value while listeners still receive the outcome event.
#[test]
fn an_operation_that_ends_during_the_outcome_event_is_reported_after_it() {
    for way in ABANDONING {
        let (events, gate, drops) = (
            Arc::<Mutex<Vec<&'static str>>>::default(),
            Gate::new(),
            Drops::default(),
        );
        let (sink, finish, dropped) = (events.clone(), gate.clone(), drops.clone());
        let timeout = limit("event_order::during", short()).with_listener(move |event| {
            if support::is_late(&event.kind) {
                sink.lock().unwrap().push("late");
            } else {
                finish.open();
                support::eventually("the value is dropped", || dropped.count() == 1);
                // Time for a late event that would come too early.
                std::thread::sleep(Duration::from_millis(20));
                sink.lock().unwrap().push("outcome");
            }
        });
        let value = drops.value();
        let outcome = way.run(&timeout, move |_| {
            gate.wait();
            Ok::<_, TimeoutError>(value)
        });
        assert_timed_out(way, &outcome);
        support::eventually("both events are emitted", || {
            events.lock().unwrap().len() == 2
        });
        assert_eq!(*events.lock().unwrap(), ["outcome", "late"], "{way:?}");
    }
}

/// An inline operation ends before its call returns, and so do both of its events.
#[test]
fn a_late_inline_operation_is_reported_between_outcome_and_return() {
    for way in [Way::SyncInline, Way::AsyncInline] {
        let recorder = record("event_order::in_place");
        let _ = way.run(&limit("event_order::in_place", short()), |token| {
            until_cancelled(&token)
        });
        let events = recorder.kinds();
        assert_eq!(events[0], EventKind::TimedOut, "{way:?}");
        assert!(
            matches!(
                events[1..],
                [EventKind::AbandonedWorkerStopped(Failure::Error(_))]
            ),
            "{way:?}: {events:?}"
        );
    }
}

#[test]
fn a_dropped_call_emits_one_event_and_its_operation_another() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let recorder = record("event_order::dropped");
        let running = Gate::new();
        let started = running.clone();
        let mut call = way.start(
            &limit("event_order::dropped", LONG),
            move |token| async move {
                started.open();
                token.cancelled().await;
                token.check().map(|()| 7)
            },
        );
        assert!(poll_once(&mut call, &Gate::new()).is_pending(), "{way:?}");
        running.wait();
        drop(call);
        if way.abandons() {
            let events = recorder.wait_for(2);
            assert_eq!(events[0], EventKind::Dropped, "{way:?}");
            assert!(
                matches!(
                    events[1..],
                    [EventKind::AbandonedWorkerStopped(Failure::Error(_))]
                ),
                "{way:?}: {events:?}"
            );
        } else {
            assert_eq!(recorder.kinds(), [EventKind::Dropped], "{way:?}");
        }
    }
}

#[test]
fn dropping_a_completed_call_emits_no_event() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    let recorder = record("event_order::ended");
    for way in ASYNC {
        let mut call = way.start(&limit("event_order::ended", LONG), |_| async {
            Ok::<_, TimeoutError>(7)
        });
        let outcome = support::block_on(&mut call);
        assert!(matches!(outcome, Outcome::Success(7)), "{way:?}");
        drop(call);
    }
    assert_eq!(recorder.kinds(), vec![EventKind::Succeeded; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_in_paused_time_emits_one_event() {
    for way in [Way::AsyncInline, Way::AsyncTask] {
        let recorder = record("event_order::virtual");
        let call = way.start(&limit("event_order::virtual", LONG), |_| {
            pending::<Result<(), TimeoutError>>()
        });
        let Outcome::TimedOut(error) = call.await else {
            panic!("{way:?} did not time out");
        };
        assert!(error.elapsed() >= Duration::from_millis(LONG), "{way:?}");
        assert_eq!(recorder.kinds(), [EventKind::TimedOut], "{way:?}");
    }
}
