//! A program that is built with `panic = "abort"`: `aborts ends` makes calls that end in each way,
//! `aborts PLACE` panics in that place.

use std::future::{Future, pending};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Event, EventKind, Outcome, Timeout, TimeoutError,
    add_listener,
};
use tokio::runtime::Builder;

const FAR: Duration = Duration::from_secs(3600);

fn limit(limit: Duration) -> Timeout {
    Timeout::new("aborts", limit).expect("the limit is not zero")
}

fn soon() -> Timeout {
    limit(Duration::from_millis(20))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

fn assert_cause(outcome: &Outcome<(), TimeoutError>, cause: Cause) {
    let error = outcome.timeout_error().expect("the call has no result");
    assert_eq!(error.cause(), cause);
}

/// Makes calls on workers, inline and as tasks, whose limits pass.
fn time_out() {
    let sleeps = |token: CancelToken| token.sleep(FAR);
    let waits = |_: CancelToken| pending::<Result<(), TimeoutError>>();
    assert_cause(&soon().outcome(sleeps), Cause::TimedOut);
    assert_cause(&soon().inline().outcome(sleeps), Cause::TimedOut);
    assert_cause(&block_on(soon().outcome_async(waits)), Cause::TimedOut);
    assert_cause(
        &block_on(soon().on_worker().outcome_async(waits)),
        Cause::TimedOut,
    );
    assert_cause(
        &block_on(soon().as_task().outcome_async(waits)),
        Cause::TimedOut,
    );
}

/// Cancels a call on a worker, and reports its late result.
fn cancel() {
    let (sender, events) = mpsc::channel();
    let listener = add_listener(move |event: &Event<'_>| {
        let is_late = matches!(event.kind, EventKind::AbandonedWorkerSucceeded);
        if is_late {
            sender.send(()).ok();
        }
    });
    let token = CancelToken::new();
    let (start, started) = mpsc::channel();
    let (finish, finished) = mpsc::channel::<()>();
    let canceller = {
        let token = token.clone();
        thread::spawn(move || {
            started.recv().expect("the operation starts");
            token.cancel();
        })
    };
    let context = CallContext::detached().with_token(&token);
    let outcome = context.run(|| {
        limit(FAR).outcome(move |_| {
            start.send(()).expect("it is awaited");
            finished.recv().expect("the caller has left");
            Ok::<_, TimeoutError>(())
        })
    });
    assert_cause(&outcome, Cause::Cancelled);
    finish.send(()).expect("the operation is still running");
    events.recv().expect("its late result is reported");
    canceller.join().expect("it does not panic");
    drop(listener);
}

fn succeed() -> Outcome<u32, TimeoutError> {
    limit(FAR).outcome(|_| Ok(7))
}

fn panic_in_operation() -> Result<(), TimeoutError> {
    panic!("a bug of the operation")
}

/// Makes a call whose limit passes. Returns whether its operation has started, which then panics.
fn abandon() -> bool {
    let (start, started) = mpsc::channel();
    let outcome = soon().outcome(move |token| {
        start.send(()).expect("it is awaited");
        token.sleep(FAR).ok();
        panic_in_operation()
    });
    assert_cause(&outcome, Cause::TimedOut);
    started.recv().is_ok()
}

fn main() -> ExitCode {
    let place = std::env::args().nth(1).unwrap_or_default();
    match place.as_str() {
        "ends" => {
            time_out();
            cancel();
            assert_eq!(succeed().status(), CallStatus::Ok);
        }
        "worker" => drop(limit(FAR).outcome(|_| panic_in_operation())),
        "inline" => drop(limit(FAR).inline().outcome(|_| panic_in_operation())),
        "polled" => drop(block_on(
            limit(FAR).outcome_async(|_| async { panic_in_operation() }),
        )),
        "abandoned" => {
            // On a busy machine, the limit may pass before the operation starts.
            while !abandon() {}
            // The worker's panic ends the process.
            thread::sleep(FAR);
        }
        "listener" => {
            let _listener = add_listener(|_: &Event<'_>| panic!("a bug of the listener"));
            drop(succeed());
        }
        _ => return ExitCode::from(64),
    }
    println!("reached the end");
    ExitCode::SUCCESS
}
