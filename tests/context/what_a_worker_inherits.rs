//! An operation on another thread inherits deadline, token and Tokio runtime, and no thread-locals.

use crate::concurrent::at_once;
use crate::support;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{
    ABANDONING, EVERY_WAY, Gate, LONG, SOON, Way, assert_timed_out, block_on, in_runtime, limit,
    runtime, short, until_cancelled,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, TimeoutError, timeout,
};
use tokio::runtime::Handle;

thread_local! {
    static LABEL: RefCell<&'static str> = const { RefCell::new("the initial label") };
}

tokio::task_local! {
    static REQUEST: u32;
}

/// State that an operation finds on its thread.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    label: &'static str,
    same_thread: bool,
    on_worker: bool,
}

fn find(way: Way) -> Found {
    let caller = thread::current().id();
    let outcome = way.run(&limit("what_a_worker_inherits::find", LONG), move |_| {
        let thread = thread::current();
        Ok::<_, TimeoutError>(Found {
            label: LABEL.with_borrow(|label| *label),
            same_thread: thread.id() == caller,
            on_worker: thread.name().is_some_and(|name| {
                name.strip_prefix("timeout-")
                    .is_some_and(|number| number.parse::<u64>().is_ok())
            }),
        })
    });
    outcome.success().unwrap()
}

/// Thread-locals must be the caller's exactly if the operation runs on the caller's thread.
#[test]
fn an_operation_on_the_callers_thread_has_its_thread_locals() {
    LABEL.set("the caller's");
    for way in EVERY_WAY {
        let found = find(way);
        let apart = way.abandons();
        let label = if apart {
            "the initial label"
        } else {
            "the caller's"
        };
        assert_eq!(found.label, label, "{way:?}");
        assert_eq!(found.same_thread, !apart, "{way:?}");
        let on_worker = matches!(way, Way::SyncWorker | Way::AsyncWorker);
        assert_eq!(found.on_worker, on_worker, "{way:?}");
    }
    assert_eq!(LABEL.take(), "the caller's", "the label is unchanged");
}

/// An argument passes a value to the worker.
#[timeout(name = "what_a_worker_inherits::given", secs = 60)]
fn given(label: &'static str) -> Result<&'static str, TimeoutError> {
    LABEL.set(label);
    let seen = LABEL.take();
    LABEL.set("the initial label");
    Ok(seen)
}

#[test]
fn an_argument_passes_a_thread_local_value_to_a_worker() {
    LABEL.set("the caller's");
    assert_eq!(
        given(LABEL.with_borrow(|label| *label)).unwrap(),
        "the caller's"
    );
}

/// The runtime of the caller must be found if there is one, and no other runtime.
#[test]
fn an_operation_has_the_runtime_of_its_caller() {
    let on_worker = [Way::SyncWorker, Way::SyncInline, Way::AsyncWorker];
    let found = |way: Way| match way {
        Way::AsyncWorker => block_on(
            limit("what_a_worker_inherits::runtime", LONG)
                .on_worker()
                .outcome_async(|_| async { Ok::<_, TimeoutError>(handle_id()) }),
        ),
        _ => way.run(&limit("what_a_worker_inherits::runtime", LONG), |_| {
            Ok::<_, TimeoutError>(handle_id())
        }),
    };
    for way in on_worker {
        assert_eq!(found(way).success(), Some(None), "{way:?}");
        let runtime = runtime();
        let inside = runtime.enter();
        let id = Some(runtime.handle().id());
        assert_eq!(found(way).success(), Some(id), "{way:?}");
        // Also from two nested calls, and no runtime stays entered afterwards.
        let nested = limit("what_a_worker_inherits::outer", LONG)
            .outcome(move |_| Ok::<_, TimeoutError>(found(way).success()));
        assert_eq!(nested.success().flatten(), Some(id), "{way:?}");
        drop(inside);
        assert_eq!(
            found(way).success(),
            Some(None),
            "{way:?}: the runtime is still entered"
        );
    }
}

fn handle_id() -> Option<tokio::runtime::Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

#[timeout(name = "what_a_worker_inherits::uses_runtime", secs = 60)]
fn uses_runtime() -> Result<u32, TimeoutError> {
    let task = tokio::spawn(async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        3
    });
    Ok(Handle::current().block_on(task).unwrap() + Handle::current().block_on(async { 4 }))
}

/// The runtime must not only be entered but also work.
#[test]
fn an_operation_on_a_worker_can_use_the_runtime_of_its_caller() {
    let runtime = runtime();
    let called_inside = runtime.block_on(async { uses_runtime() });
    assert_eq!(called_inside.unwrap(), 7);
    let _inside = runtime.enter();
    assert_eq!(uses_runtime().unwrap(), 7);
}

/// Task-locals are inherited by polling: only an inline operation has those of its caller.
#[test]
fn an_inline_operation_has_the_task_locals_of_its_caller() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for way in [Way::AsyncInline, Way::AsyncTask, Way::AsyncWorker] {
        let call = way.start(
            &limit("what_a_worker_inherits::task_local", LONG),
            |_| async { Ok::<_, TimeoutError>(REQUEST.try_with(|request| *request).ok()) },
        );
        let found = block_on(REQUEST.scope(7, call)).success().unwrap();
        let expected = (way == Way::AsyncInline).then_some(7);
        assert_eq!(found, expected, "{way:?}");
    }
}

/// The deadline and the token of the context must reach the operation.
#[test]
fn an_operation_inherits_the_deadline_and_the_token_of_the_context() {
    for way in EVERY_WAY {
        let request = CancelToken::new();
        let until = Deadline::after(Duration::from_secs(30));
        let context = CallContext::detached()
            .with_deadline(until)
            .with_token(&request);
        let (looked, gone) = (Gate::new(), Gate::new());
        let (has_looked, is_gone) = (looked.clone(), gone.clone());
        let canceller = thread::spawn(move || {
            looked.wait();
            request.cancel_with("the request is gone");
            gone.open();
        });
        let outcome = context.run(|| {
            let calls = limit("what_a_worker_inherits::ambient", LONG).with_grace(SOON);
            way.run(&calls, move |own| {
                let token = CancelToken::current();
                let left = [
                    Deadline::current(),
                    token.deadline(),
                    own.deadline(),
                    CallContext::current().run(Deadline::current),
                ]
                .map(|deadline| deadline.remaining());
                has_looked.open();
                is_gone.wait();
                let error = token.check().unwrap_err();
                let reason = error.source().map(ToString::to_string);
                Ok::<_, TimeoutError>((left, own.cause(), error.name(), reason))
            })
        });
        canceller.join().unwrap();
        let (left, cause, name, reason) = outcome.success().unwrap();
        for left in left {
            let left = left.expect("there is a deadline");
            assert!(left <= Duration::from_secs(30), "{way:?}: {left:?}");
            assert!(left > Duration::from_secs(5), "{way:?}: {left:?}");
        }
        assert_eq!(cause, Some(Cause::Cancelled), "{way:?}");
        assert_eq!(name, "what_a_worker_inherits::ambient", "{way:?}");
        assert_eq!(reason.as_deref(), Some("the request is gone"), "{way:?}");
    }
}

/// The context of the outer call must reach the inner one over two threads.
#[test]
fn the_deadline_and_the_token_propagate_from_worker_to_worker() {
    at_once(ABANDONING, |outer| {
        for inner in EVERY_WAY {
            let (sender, ended) = mpsc::channel();
            let outcome = outer.run(
                &limit("what_a_worker_inherits::outer", 2 * short()),
                move |_| {
                    let calls = limit("what_a_worker_inherits::inner", LONG);
                    sender
                        .send(inner.run(&calls, |token| until_cancelled(&token)))
                        .unwrap();
                    Ok::<_, TimeoutError>(())
                },
            );
            assert_timed_out((outer, inner), &outcome);
            let nested = ended.recv_timeout(SOON).unwrap();
            assert!(
                matches!(nested, Outcome::DeadlineExceeded(_)),
                "{outer:?}, {inner:?}: {nested:?}"
            );
        }
    });
}

/// A context must not leak into threads and tasks that the user starts.
#[test]
fn threads_and_tasks_of_the_user_inherit_the_context_only_explicitly() {
    for way in EVERY_WAY {
        let outcome = way.run(&limit("what_a_worker_inherits::own_threads", LONG), |_| {
            let has_deadline = || Deadline::current().remaining().is_some();
            let context = CallContext::current();
            let joined = context.clone();
            let threads = [
                thread::spawn(has_deadline),
                thread::spawn(move || joined.run(has_deadline)),
            ]
            .map(|thread| thread.join().unwrap());
            let tasks = thread::spawn(move || {
                in_runtime(async move {
                    let plain = tokio::spawn(async move { has_deadline() });
                    let scoped = tokio::spawn(context.scope(async move { has_deadline() }));
                    [plain.await.unwrap(), scoped.await.unwrap()]
                })
            });
            Ok::<_, TimeoutError>((threads, tasks.join().unwrap()))
        });
        let expected = ([false, true], [false, true]);
        assert_eq!(outcome.success(), Some(expected), "{way:?}");
    }
}

/// Thread-locals that an operation sets on its worker must not reach the caller.
#[test]
fn the_caller_does_not_see_the_thread_locals_of_the_operation() {
    thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(0) };
    }
    for way in EVERY_WAY {
        COUNT.set(1);
        let outcome = way.run(&limit("what_a_worker_inherits::back", LONG), |_| {
            COUNT.set(COUNT.get() + 10);
            Ok::<_, TimeoutError>(())
        });
        assert_eq!(outcome.status(), CallStatus::Ok, "{way:?}");
        assert_eq!(COUNT.get(), if way.abandons() { 1 } else { 11 }, "{way:?}");
    }
}
