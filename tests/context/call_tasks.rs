//! `CallTasks`: tasks and blocking functions inherit the context of their call, and end with it.

use crate::own_process::in_own_process;
use crate::panics::record_panics;
use crate::support::{
    Drops, Gate, SOON, Way, eventually, in_paused_time, limit, poll_once, runtime, short,
};
use crate::tenant::{TENANT, enter, propagate_tenant};
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use timeout_runtime::{
    CallContext, CallTasks, CancelToken, Cause, Deadline, TimeoutError, timeout,
};

type Found = Result<u32, TimeoutError>;

/// Sends the cause of its token when the token is cancelled.
async fn send_cause(causes: Sender<Option<Cause>>) {
    let token = CancelToken::current();
    token.cancelled().await;
    let _ = causes.send(token.cause());
}

fn send_cause_blocking(causes: &Sender<Option<Cause>>) {
    let token = CancelToken::current();
    let _ = token.wait_timeout(2 * SOON);
    let _ = causes.send(token.cause());
}

// Fails if tasks or functions run outside the context of the call.
#[test]
fn tasks_and_functions_inherit_the_deadline_and_the_token() {
    #[timeout(name = "call_tasks::outer", secs = 60)]
    async fn outer() -> Result<Vec<Deadline>, TimeoutError> {
        let mut tasks = CallTasks::new();
        tasks.spawn(async { Deadline::current() });
        tasks.spawn_blocking(Deadline::current);
        let mut deadlines = vec![Deadline::current()];
        while let Some(deadline) = tasks.join_next().await {
            deadlines.push(deadline);
        }
        Ok(deadlines)
    }

    let deadlines = runtime().block_on(outer()).unwrap();
    assert_eq!(deadlines, [deadlines[0]; 3]);
    assert!(deadlines[0].remaining().is_some());
}

#[test]
fn join_next_returns_each_value_once() {
    runtime().block_on(async {
        let mut tasks = CallTasks::new();
        assert_eq!(tasks.join_next().await, None);
        tasks.spawn(async { 1 });
        tasks.spawn_blocking(|| 2);
        let mut values = [tasks.join_next().await, tasks.join_next().await];
        values.sort_unstable();
        assert_eq!(values, [Some(1), Some(2)]);
        assert_eq!(tasks.join_next().await, None);
        tasks.spawn(async { 3 });
        assert_eq!(tasks.join_next().await, Some(3));
    });
}

#[test]
fn a_dropped_join_next_loses_no_value() {
    runtime().block_on(async {
        let (mut tasks, gate) = (CallTasks::new(), Gate::new());
        let held = gate.clone();
        tasks.spawn_blocking(move || {
            held.wait();
            7
        });
        {
            let mut waits = Box::pin(tasks.join_next());
            assert!(poll_once(&mut waits, &Gate::new()).is_pending());
        }
        gate.open();
        assert_eq!(tasks.join_next().await, Some(7));
    });
}

/// The operation waits for its tasks, and returns the error of the first one.
// Fails if the tasks are not cancelled with the call.
#[test]
fn the_deadline_of_the_call_cancels_its_tasks() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let (sender, causes) = channel();
    let call = Way::AsyncTask.start(&limit("call_tasks::deadline", short()), |_| async move {
        let mut tasks = CallTasks::new();
        tasks.spawn(send_cause(sender.clone()));
        tasks.spawn_blocking(move || send_cause_blocking(&sender));
        while tasks.join_next().await.is_some() {}
        Ok::<_, TimeoutError>(())
    });
    assert!(runtime.block_on(call).timeout_error().is_some());
    let causes = causes.into_iter().collect::<Vec<_>>();
    assert_eq!(causes, [Some(Cause::TimedOut); 2]);
}

/// A nested call in a task names the enclosing deadline as its cause.
#[test]
fn a_call_in_a_task_is_a_nested_call() {
    #[timeout(name = "call_tasks::shard", secs = 600)]
    async fn shard() -> Found {
        pending().await
    }

    #[timeout(name = "call_tasks::search", secs = 60, grace = "60s")]
    async fn search() -> Result<Cause, TimeoutError> {
        let mut tasks = CallTasks::new();
        tasks.spawn(shard());
        let found = tasks.join_next().await.expect("there is one task");
        Ok(found.expect_err("it never ends by itself").cause())
    }

    let cause = in_paused_time(async || search().await);
    assert_eq!(cause, Ok(Cause::DeadlineExceeded));
}

/// As with `?` in the operation.
// Fails if the token of the tasks is that of the call: the call ends in time.
#[test]
fn dropping_cancels_the_tasks_of_a_call_that_ends_in_time() {
    #[timeout(name = "call_tasks::fails", secs = 60)]
    async fn fails(causes: Sender<Option<Cause>>, drops: Drops) -> Result<(), TimeoutError> {
        let mut tasks = CallTasks::new();
        let (begun, started) = (Gate::new(), Gate::new());
        let (has_begun, has_started) = (begun.clone(), started.clone());
        tasks.spawn(async move {
            let _value = drops.value();
            has_begun.open();
            pending::<()>().await;
        });
        tasks.spawn_blocking(move || {
            has_started.open();
            send_cause_blocking(&causes);
        });
        begun.wait();
        started.wait();
        Ok(())
    }

    let runtime = runtime();
    let ((sender, causes), drops) = (channel(), Drops::default());
    runtime.block_on(fails(sender, drops.clone())).unwrap();
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
    // It never checks its token.
    eventually("the task is aborted", || drops.count() == 1);
}

// Fails if `shutdown` does not cancel, or does not wait.
#[test]
fn shutdown_cancels_and_waits_for_all() {
    let runtime = runtime();
    runtime.block_on(async {
        let mut tasks = CallTasks::new();
        let (sender, causes) = channel();
        tasks.spawn(send_cause(sender.clone()));
        tasks.spawn_blocking({
            let sender = sender.clone();
            move || send_cause_blocking(&sender)
        });
        tasks.shutdown().await;
        let seen: Vec<_> = causes.try_iter().collect();
        assert_eq!(seen, [Some(Cause::Cancelled); 2]);

        // A later one starts cancelled.
        tasks.spawn(send_cause(sender));
        assert_eq!(tasks.join_next().await, Some(()));
        assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
    });
}

// Fails if `shutdown` aborts: the task could not clean up.
#[test]
fn shutdown_lets_a_task_finish_its_cleanup() {
    in_paused_time(async || {
        let (mut tasks, drops) = (CallTasks::new(), Drops::default());
        let value = drops.value();
        tasks.spawn(async move {
            CancelToken::current().cancelled().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(value);
        });
        let mut shutdown = Box::pin(tasks.shutdown());
        assert!(poll_once(&mut shutdown, &Gate::new()).is_pending());
        shutdown.await;
        assert_eq!(drops.count(), 1);
    });
}

#[test]
fn outside_a_call_only_dropping_cancels() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let (sender, causes) = channel();
    let mut tasks = CallTasks::new();
    let (begun, token) = (Gate::new(), CancelToken::new());
    let has_begun = begun.clone();
    CallContext::detached().with_token(&token).run(|| {
        tasks.spawn_blocking(move || {
            assert_eq!(Deadline::current(), Deadline::never());
            has_begun.open();
            send_cause_blocking(&sender);
        });
    });
    begun.wait();
    token.cancel(); // that of the context where it was spawned, and not created
    assert!(causes.try_recv().is_err());
    drop(tasks);
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::Cancelled)));
}

/// As a call resumes the panic of its operation.
#[test]
fn join_next_resumes_a_panic() {
    record_panics();
    runtime().block_on(async {
        for blocks in [true, false] {
            let mut tasks = CallTasks::<()>::new();
            if blocks {
                tasks.spawn_blocking(|| panic!("wanted: blocks"));
            } else {
                tasks.spawn(async { panic!("wanted: polls") });
            }
            let gate = Gate::new();
            let payload = loop {
                let mut next = Box::pin(tasks.join_next());
                match catch_unwind(AssertUnwindSafe(|| poll_once(&mut next, &gate))) {
                    Ok(Poll::Pending) => gate.wait(),
                    Ok(Poll::Ready(value)) => panic!("{value:?} instead of a panic"),
                    Err(payload) => break payload,
                }
            };
            let text = if blocks {
                "wanted: blocks"
            } else {
                "wanted: polls"
            };
            assert_eq!(payload.downcast_ref(), Some(&text));
        }
    });
}

// Fails if a poll, a drop or a function runs without the state of the propagators.
#[test]
fn tasks_and_functions_have_the_state_of_propagators() {
    struct SendsTenant(Sender<u32>);

    impl Drop for SendsTenant {
        fn drop(&mut self) {
            let _ = self.0.send(TENANT.get());
        }
    }

    in_own_process(|| {
        propagate_tenant();
        let _tenant = enter(7);
        let runtime = runtime();
        let (sender, tenants) = channel();
        runtime.block_on(async {
            let mut tasks = CallTasks::new();
            tasks.spawn_blocking(|| TENANT.get());
            tasks.spawn(async {
                tokio::task::yield_now().await;
                TENANT.get()
            });
            for _ in 0..2 {
                assert_eq!(tasks.join_next().await, Some(7));
            }
            let (begun, sends) = (Gate::new(), SendsTenant(sender));
            let has_begun = begun.clone();
            tasks.spawn(async move {
                let _sends = sends;
                has_begun.open();
                pending().await
            });
            begun.wait();
        });
        assert_eq!(tenants.recv_timeout(SOON), Ok(7));
    });
}

/// A panic that a destructor of the task throws at its end is a panic of the task.
#[test]
fn a_panic_of_a_destructor_reaches_join_next() {
    struct Panics;

    impl Drop for Panics {
        fn drop(&mut self) {
            if !thread::panicking() {
                resume_unwind(Box::new("destructor"));
            }
        }
    }

    let runtime = runtime();
    let ended = runtime.block_on(runtime.spawn(async {
        let mut tasks = CallTasks::new();
        let panics = Panics;
        tasks.spawn(poll_fn(move |_| {
            let _ = &panics;
            Poll::Ready(7)
        }));
        tasks.join_next().await
    }));
    let payload = ended.expect_err("it panics").into_panic();
    assert_eq!(payload.downcast_ref(), Some(&"destructor"));
}

/// The tasks of an operation that is destroyed at its deadline are cancelled with it.
#[test]
fn an_operation_dropped_at_its_deadline_cancels_its_tasks() {
    let runtime = runtime();
    let (sender, causes) = channel();
    let call = async {
        let policy = limit("call_tasks::dropped", short());
        let call = policy.outcome_async(|_| async move {
            let (mut tasks, begun) = (CallTasks::new(), Gate::new());
            let has_begun = begun.clone();
            tasks.spawn_blocking(move || {
                has_begun.open();
                send_cause_blocking(&sender);
            });
            begun.wait();
            pending::<Found>().await
        });
        call.await.timeout_error().cloned()
    };
    let error = runtime.block_on(call).expect("it timed out");
    assert!(error.is_timed_out());
    assert_eq!(causes.recv_timeout(SOON), Ok(Some(Cause::TimedOut)));
}
