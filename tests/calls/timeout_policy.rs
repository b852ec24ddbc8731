//! `Timeout`, the policy behind the attribute, used directly.

use crate::support;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use support::{
    EVERY_WAY, Way, assert_timed_out, block_on, in_runtime, limit, record, short, until_past,
};
use timeout_runtime::{
    CallStatus, CancelToken, Cause, Deadline, EventKind, InvalidLimit, Timeout, TimeoutError,
    add_listener,
};

#[test]
fn a_limit_of_zero_is_an_error_that_names_the_policy() {
    let refusals: [Result<Timeout, InvalidLimit>; 2] = [
        Timeout::new("timeout_policy::zero", Duration::ZERO),
        limit("timeout_policy::zero", 5).with_limit(Duration::ZERO),
    ];
    for refused in refusals {
        let error = refused.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the limit of `timeout_policy::zero` is zero; it must be longer"
        );
    }
}

#[test]
fn a_policy_returns_its_settings() {
    let timeout = limit("timeout_policy::says", 5).with_limit(Duration::from_secs(9));
    let timeout = timeout.unwrap();
    assert_eq!(timeout.name(), "timeout_policy::says");
    let text = format!("{timeout:?}");
    assert!(
        text.contains("timeout_policy::says") && text.contains("9s"),
        "{text}"
    );
}

#[test]
fn the_longest_limit_never_passes() {
    for way in EVERY_WAY {
        for longest in [Duration::MAX, Duration::from_secs(u64::MAX)] {
            let timeout = limit("timeout_policy::longest", 5);
            let timeout = timeout.with_limit(longest).unwrap();
            let outcome = way.run(&timeout.with_grace(Duration::MAX), |token| {
                Ok::<_, TimeoutError>((token.deadline(), token.remaining()))
            });
            assert_eq!(
                outcome.success(),
                Some((Deadline::never(), None)),
                "{way:?}"
            );
        }
    }
}

#[test]
fn changing_a_copy_leaves_the_policy_unchanged() {
    let events = Arc::<Mutex<Vec<&'static str>>>::default();
    let sink = events.clone();
    let original = limit("timeout_policy::copy", 60_000);
    let copy = original
        .clone()
        .with_listener(move |_| sink.lock().unwrap().push("copy"))
        .with_limit(Duration::from_secs(1))
        .unwrap();
    assert!(format!("{original:?}").contains("60s"));
    for timeout in [&original, &copy] {
        let outcome = timeout.inline().outcome(|_| Ok::<_, TimeoutError>(7));
        assert_eq!(outcome.status(), CallStatus::Ok);
    }
    assert_eq!(*events.lock().unwrap(), ["copy"]);
}

/// An error that records which runner converted it.
#[derive(Debug)]
enum AppError {
    Own,
    Late(TimeoutError),
}

impl From<TimeoutError> for AppError {
    fn from(error: TimeoutError) -> Self {
        Self::Late(error)
    }
}

#[test]
fn every_call_runner_returns_a_result() {
    type Calls = [Result<u32, AppError>; 5];

    fn calls(op: fn(CancelToken) -> Result<u32, AppError>) -> Calls {
        let timeout = limit("timeout_policy::calls", short());
        [
            timeout.call(op),
            timeout.inline().call(op),
            in_runtime(timeout.call_async(|token| async move { op(token) })),
            in_runtime(
                timeout
                    .as_task()
                    .call_async(move |token| async move { op(token) }),
            ),
            in_runtime(
                timeout
                    .on_worker()
                    .call_async(move |token| async move { op(token) }),
            ),
        ]
    }

    for result in calls(|_| Ok(7)) {
        assert_eq!(result.unwrap(), 7);
    }
    for result in calls(|_| Err(AppError::Own)) {
        assert!(matches!(result, Err(AppError::Own)), "{result:?}");
    }
    for result in calls(|token| Ok(support::until_cancelled(&token)?)) {
        assert!(
            matches!(&result, Err(AppError::Late(error)) if error.is_timed_out()),
            "{result:?}"
        );
    }
}

/// Inline runners need neither `Send` nor `'static`. The async worker runner needs both only of
/// the closure that builds the future.
#[test]
fn runners_require_only_the_bounds_that_they_need() {
    let timeout = limit("timeout_policy::bounds", 60_000);
    let mut local = Rc::new(vec![1]);
    let sync = timeout.inline().outcome(|_| {
        Rc::make_mut(&mut local).push(2);
        Ok::<_, TimeoutError>(&local)
    });
    assert_eq!(sync.success().map(|list| list.len()), Some(2));
    let text = String::from("borrowed");
    let in_place = in_runtime(timeout.outcome_async(|_| async {
        let shared = Rc::new(text.as_str());
        tokio::task::yield_now().await;
        Ok::<_, TimeoutError>(shared.len())
    }));
    assert_eq!(in_place.success(), Some(8));
    let on_worker = in_runtime(timeout.on_worker().outcome_async(|_| async {
        let local = Rc::new(8);
        tokio::task::yield_now().await;
        Ok::<_, TimeoutError>(*local)
    }));
    assert_eq!(on_worker.success(), Some(8));
}

#[test]
fn a_policys_listener_is_called_first_and_only_for_its_calls() {
    let events = Arc::<Mutex<Vec<&'static str>>>::default();
    let (own, all) = (events.clone(), events.clone());
    let _listener = add_listener(move |event| {
        if event.name == "timeout_policy::own" {
            all.lock().unwrap().push("registered");
        }
    });
    let timeout = limit("timeout_policy::own", 60_000)
        .with_listener(move |_| own.lock().unwrap().push("own"));
    let _ = timeout.outcome(|_| Ok::<_, TimeoutError>(7));
    let _ = limit("timeout_policy::own", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
    assert_eq!(*events.lock().unwrap(), ["own", "registered", "registered"]);
}

#[test]
fn a_clock_sets_timestamps_and_does_not_affect_the_limit() {
    for way in EVERY_WAY {
        let recorder = record("timeout_policy::clock");
        let timeout = limit("timeout_policy::clock", short()).with_clock(|| SystemTime::UNIX_EPOCH);
        let outcome = way.run(&timeout, |token| support::until_cancelled(&token));
        assert_timed_out(way, &outcome);
        recorder.wait_for(2);
        for event in recorder.events() {
            assert_eq!(event.timestamp, SystemTime::UNIX_EPOCH, "{way:?}");
        }
    }
}

#[test]
fn without_a_clock_events_have_the_systems_time() {
    let recorder = record("timeout_policy::system");
    let before = SystemTime::now();
    let _ = limit("timeout_policy::system", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
    let stamped = recorder.events()[0].timestamp;
    assert!((before..=SystemTime::now()).contains(&stamped));
}

#[test]
fn a_removed_listener_receives_nothing_and_a_forgotten_handle_keeps_it() {
    let events = Arc::<Mutex<Vec<&'static str>>>::default();
    let listen = |text: &'static str| {
        let sink = events.clone();
        add_listener(move |event| {
            if event.name == "timeout_policy::handles" {
                sink.lock().unwrap().push(text);
            }
        })
    };
    let (removed, forgotten) = (listen("removed"), listen("forgotten"));
    forgotten.forget();
    drop(removed);
    let _ = limit("timeout_policy::handles", 60_000).outcome(|_| Ok::<_, io::Error>(7));
    assert_eq!(*events.lock().unwrap(), ["forgotten"]);
}

/// Events have the worker's name, if there is one, and a number for each call.
#[test]
fn events_identify_their_call_and_worker() {
    let recorder = record("timeout_policy::which");
    for way in EVERY_WAY {
        let _ = way.run(&limit("timeout_policy::which", 60_000), |_| {
            Ok::<_, TimeoutError>(7)
        });
    }
    let events = recorder.events();
    for pair in events.windows(2) {
        assert!(pair[0].call < pair[1].call);
    }
    let on_worker: Vec<_> = events.iter().map(|event| event.worker.is_some()).collect();
    assert_eq!(on_worker, [true, false, false, false, true]);
    let event = &events[0];
    let text = event.to_string();
    let expected = format!("`timeout_policy::which` {} succeeded after ", event.call);
    assert!(text.starts_with(&expected), "{text}");
    assert!(
        text.ends_with(&format!("(limit 60s) on {}", event.worker.unwrap())),
        "{text}"
    );
    assert!(matches!(event.kind, EventKind::Succeeded));
}

/// `call_inline`, `call_task` and their like were twenty methods; now a selector chooses the place.
#[test]
fn a_selector_chooses_the_place_of_an_operation() {
    let timeout = limit("timeout_policy::place", 60_000);
    let here = thread::current().id();
    let place = |_: CancelToken| Ok::<_, TimeoutError>(thread::current().id());
    let place_async = move |token| std::future::ready(place(token));
    assert_ne!(timeout.call(place), Ok(here));
    assert_ne!(timeout.on_worker().call(place), Ok(here));
    assert_eq!(timeout.inline().call(place), Ok(here));
    assert_eq!(block_on(timeout.call_async(place_async)), Ok(here));
    assert_eq!(block_on(timeout.inline().call_async(place_async)), Ok(here));
    assert_ne!(
        block_on(timeout.on_worker().call_async(place_async)),
        Ok(here)
    );
    let task = timeout
        .as_task()
        .call_async(|_| async { Ok::<_, TimeoutError>(tokio::task::id()) });
    assert!(in_runtime(task).is_ok());
    let outside = block_on(timeout.as_task().outcome_async(place_async));
    assert_eq!(
        outside.timeout_error().map(TimeoutError::cause),
        Some(Cause::NoRuntime)
    );
}

#[test]
fn a_policy_with_a_place_and_an_on_late_function_makes_any_number_of_calls() {
    let (late, replaced) = <(Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>)>::default();
    let push_to = |list: &Arc<Mutex<Vec<_>>>| {
        let list = Arc::clone(list);
        move |result: Result<u32, TimeoutError>| list.lock().unwrap().push(result)
    };
    let policy = limit("timeout_policy::kept", short())
        .on_late(push_to(&replaced))
        .inline()
        .on_late(push_to(&late));
    let here = thread::current().id();
    for number in 0..3 {
        let outcome = policy.outcome(|token| {
            assert_eq!(thread::current().id(), here);
            until_past(&token);
            Ok(number)
        });
        assert_timed_out(Way::SyncInline, &outcome);
    }
    assert_eq!(*late.lock().unwrap(), [Ok(0), Ok(1), Ok(2)]);
    assert_eq!(*replaced.lock().unwrap(), []);
}

/// The compiler could not prove `Send` for a call whose error is a `dyn Error`, inside a task.
#[test]
fn calls_of_every_place_can_be_awaited_in_a_spawned_task() {
    type BoxError = Box<dyn std::error::Error + Send + Sync>;

    async fn calls(
        timeout: Timeout,
        op: impl AsyncFnOnce() -> Result<u32, BoxError> + Copy,
    ) -> u32 {
        let late = |_: Result<u32, BoxError>| ();
        let inline = timeout.inline().call_async(async |_| op().await).await;
        let default = timeout.on_late(late).call_async(async |_| op().await).await;
        let here = timeout.outcome_async(async |_| op().await).await.success();
        inline.unwrap() + default.unwrap() + here.unwrap()
    }

    async fn apart(timeout: Timeout, text: String) -> Result<usize, BoxError> {
        let (one, two) = (text.clone(), text);
        let task = timeout
            .as_task()
            .call_async(async move |_| -> Result<_, BoxError> {
                tokio::task::yield_now().await;
                Ok(one.len())
            });
        let worker =
            timeout
                .on_worker()
                .on_late(|_| ())
                .call_async(async move |_| -> Result<_, BoxError> {
                    tokio::task::yield_now().await;
                    Ok(two.len())
                });
        Ok(task.await? + worker.await?)
    }

    let timeout = limit("timeout_policy::spawned", 60_000);
    let runtime = support::runtime();
    let calls = runtime.spawn(calls(timeout.clone(), async || Ok(7)));
    assert_eq!(runtime.block_on(calls).unwrap(), 21);
    let apart = runtime.spawn(apart(timeout, "seven".to_owned()));
    assert_eq!(runtime.block_on(apart).unwrap().unwrap(), 10);
}
