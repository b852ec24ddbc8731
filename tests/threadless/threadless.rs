//! Makes calls of every kind on a platform without threads, and checks their outcomes. `.ci/run`
//! runs it on wasm32-wasip1. On other platforms calls get a worker; all other assertions are the
//! same.

// Fails on wasm32-wasip1 if the runtime reads the process id, which that target does not have.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use timeout_runtime::{
    CallStatus, CancelToken, Cause, Deadline, TimeoutError, add_listener, timeout, workers,
};

const HAS_THREADS: bool = !cfg!(target_family = "wasm");
/// Long enough to differ measurably from zero.
const LIMIT: Duration = Duration::from_millis(100);

#[timeout(name = "on_worker", secs = 3600)]
fn on_worker() -> Result<u32, TimeoutError> {
    Ok(7)
}

#[timeout(name = "without_cancellation", secs = 3600, cancel = false)]
fn without_cancellation() -> Result<u32, TimeoutError> {
    Ok(7)
}

#[timeout(name = "future_on_worker", secs = 3600, run = "worker")]
async fn future_on_worker() -> Result<u32, TimeoutError> {
    Ok(7)
}

#[timeout(name = "sync_inline", secs = 3600, run = "inline")]
fn sync_inline(number: &RefCell<u32>) -> Result<u32, TimeoutError> {
    cancel_token.check()?;
    *number.borrow_mut() += 1;
    Ok(*number.borrow())
}

#[timeout(name = "sleeps", limit = LIMIT, run = "inline")]
fn sleeps() -> Result<(), TimeoutError> {
    cancel_token.sleep(Duration::from_secs(3600))
}

#[timeout(name = "waits", limit = LIMIT)]
async fn waits() -> Result<(), TimeoutError> {
    pending().await
}

#[timeout(name = "async_inline", secs = 3600)]
async fn async_inline(shared: Rc<str>) -> Result<usize, TimeoutError> {
    Ok(shared.len())
}

#[timeout(name = "nested", limit = LIMIT)]
async fn nested() -> Result<(), TimeoutError> {
    later().await
}

#[timeout(name = "later", secs = 3600)]
async fn later() -> Result<(), TimeoutError> {
    pending().await
}

#[timeout(name = "task", secs = 3600, run = "task")]
async fn task() -> Result<u32, TimeoutError> {
    Ok(7)
}

/// Polls a future to completion, like an executor without timers.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Asserts that a call that needs a worker got one, or was refused where there are no threads.
fn assert_needs_worker(result: Result<u32, TimeoutError>) {
    match result {
        Ok(value) => assert!(HAS_THREADS && value == 7),
        Err(error) if HAS_THREADS => panic!("{error}"),
        Err(error) => {
            assert_eq!(error.cause(), Cause::NoWorker);
            assert_eq!(error.status(), CallStatus::NotStarted);
            assert_eq!(error.status(), CallStatus::NotStarted);
        }
    }
}

/// Asserts that `call` ends by its own limit.
fn assert_times_out(call: impl FnOnce() -> Result<(), TimeoutError>) {
    let start = Instant::now();
    let error = call().unwrap_err();
    assert!(start.elapsed() >= LIMIT);
    assert!(error.is_timed_out(), "{error}");
}

fn main() {
    let _listener = add_listener(|event| println!("{event}"));

    assert_needs_worker(on_worker());
    assert_needs_worker(without_cancellation());
    assert_needs_worker(block_on(future_on_worker()));
    workers::drain(Duration::from_secs(3600));

    assert_eq!(sync_inline(&RefCell::new(6)).unwrap(), 7);
    assert_times_out(sleeps);

    assert_eq!(block_on(async_inline("seven".into())).unwrap(), 5);
    assert_times_out(|| block_on(waits()));
    assert_times_out(|| block_on(nested()));

    let token = CancelToken::new();
    assert_eq!(token.wait_timeout(LIMIT), None);
    let cancelled = token.clone();
    let _registration = token.on_cancel(move || println!("a callback of a cancelled token"));
    cancelled.cancel();
    assert!(token.is_cancelled());
    block_on(token.cancelled());
    // Without threads, `cancel` calls the stop.
    let token = CancelToken::new();
    let stopped = token.interrupt_with(|| println!("a stop"), || token.cancel());
    assert!(stopped.unwrap_err().is_cancelled());

    let shared = Deadline::after(LIMIT);
    assert!(!shared.has_passed());

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    assert_eq!(runtime.block_on(task()).unwrap(), 7);
    assert_times_out(|| runtime.block_on(waits()));
    println!("all calls ended as documented");
}
