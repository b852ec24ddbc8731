//! A program for which every thread is refused: `RUST_MIN_STACK=9000000000000000000 starved`. Its
//! exit code is the number of the failed check.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use timeout_runtime::workers;
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, Timeout, TimeoutError,
};
use tokio::runtime::Builder;

const SHORT: Duration = Duration::from_millis(50);
/// A wait for this limit does not end within the test.
const LONG: Duration = Duration::from_secs(600);

fn calls(limit: Duration) -> Timeout {
    Timeout::new("starved", limit).expect("a limit")
}

fn block_on<O>(future: impl Future<Output = O>) -> O {
    let runtime = Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

type CallOutcome = Outcome<u32, TimeoutError>;

fn is_refused(outcome: &CallOutcome) -> bool {
    matches!(outcome, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker)
}

/// No hook is called without a thread.
fn cannot_start_early() -> bool {
    workers::on_thread_start(|| std::process::abort());
    workers::start(4).is_err() && workers::stats().live == 0
}

fn needs_a_worker() -> bool {
    let sync = calls(LONG).outcome(|_| Ok(7));
    let polled = block_on(calls(LONG).on_worker().outcome_async(|_| async { Ok(7) }));
    is_refused(&sync) && is_refused(&polled)
}

fn succeeds() -> bool {
    let inline = calls(LONG).inline().outcome(|_| Ok::<_, TimeoutError>(7));
    let yields = |_| async {
        tokio::task::yield_now().await;
        Ok::<_, TimeoutError>(7)
    };
    let polled = block_on(calls(LONG).outcome_async(yields));
    let task = block_on(calls(LONG).as_task().outcome_async(yields));
    inline.status() == CallStatus::Ok
        && polled.status() == CallStatus::Ok
        && task.status() == CallStatus::Ok
}

fn times_out(outcome: impl FnOnce() -> CallOutcome) -> bool {
    let start = Instant::now();
    let outcome = outcome();
    matches!(outcome, Outcome::TimedOut(_)) && start.elapsed() >= SHORT
}

fn sync_inline() -> CallOutcome {
    calls(SHORT)
        .inline()
        .outcome(|token| token.sleep(LONG).map(|()| 7))
}

fn sync_inline_below() -> CallOutcome {
    calls(SHORT)
        .inline()
        .outcome(|token| token.child().sleep(LONG).map(|()| 7))
}

/// Never waits, and checks only a distant descendant of its own token.
fn sync_inline_reads_below() -> CallOutcome {
    calls(SHORT).inline().outcome(|token| {
        let (child, start) = (token.child(), Instant::now());
        let below = child.child();
        while start.elapsed() < LONG {
            below.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(7)
    })
}

fn polled() -> CallOutcome {
    block_on(calls(SHORT).outcome_async(|_| pending::<Result<u32, TimeoutError>>()))
}

fn task() -> CallOutcome {
    block_on(
        calls(SHORT)
            .as_task()
            .outcome_async(|_| pending::<Result<u32, TimeoutError>>()),
    )
}

/// A nested call that waits for the enclosing call's token.
fn nested() -> CallOutcome {
    calls(SHORT).inline().outcome(|_| {
        let inner = block_on(calls(LONG).outcome_async(|token| async move {
            token.child().cancelled().await;
            token.check().map(|()| 7)
        }));
        Result::from(inner)
    })
}

/// The token of a context, which is cancelled only by the context's deadline.
fn context() -> CancelToken {
    let soon = Deadline::after(SHORT);
    let context = CallContext::detached().with_deadline(soon);
    context.run(CancelToken::current)
}

/// Counts the polls of a future.
struct Polls<'a, F>(Pin<&'a mut F>, &'a AtomicUsize);

impl<F: Future> Future for Polls<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.as_mut().poll(context)
    }
}

fn waits_for_a_context() -> bool {
    let start = Instant::now();
    let (own, parent) = (context(), context());
    let below = parent.child().child();
    block_on(own.cancelled());
    block_on(below.cancelled());
    let waited = context().child().wait_timeout(LONG);
    waited == Some(Cause::DeadlineExceeded)
        && below.cause() == Some(Cause::DeadlineExceeded)
        && start.elapsed() >= SHORT
}

/// The callback has run when a check returns that the token is cancelled.
fn calls_back() -> bool {
    let called = Arc::new(AtomicBool::new(false));
    let calls = Arc::clone(&called);
    let token = context();
    let _registration = token.on_cancel(move || calls.store(true, Ordering::SeqCst));
    while !token.is_cancelled() {
        std::hint::spin_loop();
    }
    called.load(Ordering::SeqCst)
}

/// The canceller calls the stop itself. On the thread that works it does so once: it would wait for
/// itself.
fn work_cancels_its_own_token() -> bool {
    let (token, stops) = (CancelToken::new(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&stops);
    let stop = move || counted.fetch_add(1, Ordering::SeqCst);
    let stopped = token.interrupt_with(stop, || token.cancel());
    stopped.is_err() && stops.load(Ordering::SeqCst) == 1
}

/// Another canceller repeats the stop until the work has returned.
fn a_lost_stop_is_repeated() -> bool {
    let (token, stops) = (CancelToken::new(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&stops);
    let stop = move || counted.fetch_add(1, Ordering::SeqCst);
    let cancels = token.clone();
    // A thread of the program itself has a possible stack size.
    let canceller = std::thread::Builder::new().stack_size(1 << 20);
    let stopped = token.interrupt_with(stop, || {
        let canceller = canceller.spawn(move || cancels.cancel());
        while stops.load(Ordering::SeqCst) < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        canceller.expect("a thread")
    });
    stopped.is_err()
}

/// A token cancelled by `cancel` wakes its waiter, which need not poll all the time.
fn is_woken() -> bool {
    let (token, polls) = (CancelToken::new(), AtomicUsize::new(0));
    let mut waits = pin!(token.cancelled());
    block_on(async {
        let waits = Polls(waits.as_mut(), &polls);
        let cancels = async {
            tokio::task::yield_now().await;
            token.cancel();
        };
        tokio::join!(waits, cancels);
    });
    polls.load(Ordering::Relaxed) <= 3
}

fn main() -> ExitCode {
    let checks = [
        cannot_start_early(),
        needs_a_worker(),
        succeeds(),
        times_out(sync_inline),
        times_out(sync_inline_below),
        times_out(sync_inline_reads_below),
        times_out(polled),
        times_out(task),
        times_out(nested),
        waits_for_a_context(),
        calls_back(),
        work_cancels_its_own_token(),
        a_lost_stop_is_repeated(),
        is_woken(),
        needs_a_worker(),
    ];
    let wrong = checks.iter().position(|is_right| !is_right);
    ExitCode::from(wrong.map_or(0, |place| u8::try_from(place + 1).expect("a small number")))
}
