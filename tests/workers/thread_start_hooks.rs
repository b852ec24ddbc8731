//! Functions for `on_thread_start` may panic and make calls.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use support::{Gate, SOON, block_on, limit, short};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, TimeoutError,
};

/// Makes each call start a new thread, which runs `hook` first.
fn set_hook(hook: impl Fn() + Send + Sync + 'static) {
    Settings {
        keep_alive: Duration::ZERO,
        reuse: false,
        ..Settings::current()
    }
    .apply();
    workers::on_thread_start(hook);
}

fn succeeds() -> bool {
    let outcome = limit("hooks::succeeds", 60_000).outcome(|_| Ok::<_, TimeoutError>(7));
    outcome.success() == Some(7)
}

fn is_refused<T>(outcome: &Outcome<T, TimeoutError>) -> bool {
    matches!(outcome, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker)
}

#[test]
fn a_hook_runs_once_on_each_worker() {
    in_own_process(|| {
        let count = Arc::<AtomicUsize>::default();
        let runs = Arc::clone(&count);
        set_hook(move || {
            runs.fetch_add(1, Ordering::SeqCst);
        });
        for calls in 1..=3 {
            assert!(succeeds());
            assert_eq!(count.load(Ordering::SeqCst), calls);
        }
    });
}

// Fails if the panic is not caught.
#[test]
fn a_panicking_hook_costs_no_thread_and_no_call() {
    in_own_process(|| {
        set_hook(|| panic!("as it should be"));
        assert!(succeeds() && succeeds());
    });
}

/// Makes calls in a hook; the error names the first failed check.
fn call_from_hook() -> Result<(), &'static str> {
    let holds = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
    let calls = limit("hooks::calls", 60_000);
    let expires = limit("hooks::short", short());
    holds(
        is_refused(&calls.outcome(|_| Ok::<_, TimeoutError>(7))),
        "worker",
    )?;
    let polled = calls
        .on_worker()
        .outcome_async(async |_| Ok::<_, TimeoutError>(7));
    holds(is_refused(&block_on(polled)), "polled worker")?;
    let inline = calls.inline().outcome(|_| Ok::<_, TimeoutError>(7));
    holds(inline.status() == CallStatus::Ok, "inline")?;
    let never = block_on(expires.outcome_async(|_| pending::<Result<(), TimeoutError>>()));
    holds(matches!(never, Outcome::TimedOut(_)), "polled")?;
    let soon = CallContext::detached().with_deadline(Deadline::after(support::short_limit()));
    let waited = soon.run(CancelToken::current).wait_timeout(Duration::MAX);
    holds(waited == Some(Cause::DeadlineExceeded), "token")?;
    let (token, called) = (CancelToken::new(), Gate::new());
    let calls_back = called.clone();
    token.on_cancel(move || calls_back.open()).forget();
    token.cancel();
    called.wait();
    holds(workers::start(1).is_err(), "start")
}

// Fails if the runtime does not detect that a call comes from a hook.
#[test]
fn a_hook_may_make_calls() {
    in_own_process(|| {
        let (sender, ended) = mpsc::channel();
        set_hook(move || sender.send(call_from_hook()).unwrap());
        assert!(concurrent::must_return(succeeds));
        // The timer's threads run the hook too.
        concurrent::must_return(|| workers::start(0)).unwrap();
        for _ in 0..3 {
            assert_eq!(ended.recv_timeout(SOON), Ok(Ok(())));
        }
    });
}

#[test]
fn the_only_worker_may_run_a_hook_that_makes_calls() {
    in_own_process(|| {
        let (sender, ended) = mpsc::channel();
        set_hook(move || sender.send(call_from_hook()).unwrap());
        Settings {
            cap: 1,
            ..Settings::current()
        }
        .apply();
        let succeeded = concurrent::must_return(succeeds);
        assert!(succeeded);
        assert_eq!(ended.recv_timeout(SOON), Ok(Ok(())));
    });
}
