//! A program that is stopped, or receives many signals, during its calls: `signalled stopped CASE`,
//! `signalled showered SIGNALS`. It prints a line when it is ready; its exit code is the number of
//! the failed check.

use std::future::{Future, pending};
use std::io::{Read, Write};
use std::pin::Pin;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use timeout_runtime::{
    CallStatus, CancelToken, Event, Outcome, Registration, Timeout, TimeoutError, add_listener,
};
use tokio::runtime::{Builder, Runtime};

/// Longer than the program needs to get ready, and shorter than it is stopped.
const LIMIT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(600);

type CallOutcome = Outcome<u32, TimeoutError>;

fn calls(limit: Duration) -> Timeout {
    Timeout::new("signalled", limit).expect("a limit")
}

fn say_ready() {
    println!("ready");
    std::io::stdout().flush().expect("an open standard output");
}

fn wait_for_input() {
    let _ = std::io::stdin().read(&mut [0]);
}

fn check(place: i32, holds: bool) {
    if !holds {
        exit(place);
    }
}

/// Counts the outcome events of calls that do not succeed.
fn outcome_events() -> (Arc<AtomicUsize>, Registration) {
    let events = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&events);
    let listener = add_listener(move |event: &Event<'_>| {
        let status = event.kind.status();
        if status.is_some_and(|status| status != CallStatus::Ok) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (events, listener)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime")
}

/// Reports that the program is ready, which is then stopped while this operation waits for its
/// token.
fn stops_when_cancelled(token: &CancelToken) -> Result<u32, TimeoutError> {
    say_ready();
    token.sleep(LONG)?;
    Ok(7)
}

/// The call whose limit passes while the process is stopped.
fn stopped_in(case: &str) -> CallOutcome {
    let timeout = calls(LIMIT);
    match case {
        "sync-worker" => timeout.outcome(|token| stops_when_cancelled(&token)),
        "sync-inline" => timeout
            .inline()
            .outcome(|token| stops_when_cancelled(&token)),
        "async-inline" => runtime().block_on(timeout.outcome_async(|_| async {
            say_ready();
            pending().await
        })),
        "async-worker" => {
            let call = timeout
                .on_worker()
                .outcome_async(|token| async move { stops_when_cancelled(&token) });
            runtime().block_on(call)
        }
        "async-task" => runtime().block_on(timeout.as_task().outcome_async(|token| async move {
            say_ready();
            token.cancelled().await;
            token.check().map(|()| 7)
        })),
        _ => exit(64),
    }
}

fn stopped(case: &str) {
    let (events, _listener) = outcome_events();
    let start = Instant::now();
    let outcome = stopped_in(case);
    check(10, matches!(outcome, Outcome::TimedOut(_)));
    check(11, start.elapsed() >= LIMIT);
    check(12, events.load(Ordering::SeqCst) == 1);
    later_calls_work();
}

fn later_calls_work() {
    let outcome = calls(LONG).outcome(|_| Ok::<_, TimeoutError>(7));
    check(13, outcome.status() == CallStatus::Ok);
    let start = Instant::now();
    let expires = calls(Duration::from_millis(20)).outcome(|token| token.sleep(LONG));
    // On a busy machine no worker may have taken the call in time.
    check(
        14,
        matches!(expires, Outcome::TimedOut(_) | Outcome::NotStarted(_)),
    );
    check(15, start.elapsed() < LONG / 10);
}

/// Sends a message when it is woken.
struct SendsOnWake(SyncSender<()>);

impl Wake for SendsOnWake {
    fn wake(self: Arc<Self>) {
        let _ = self.0.try_send(());
    }
}

/// A result published in time wins even if its caller reads it late.
fn ended_before_the_stop() {
    let (events, _listener) = outcome_events();
    let (sender, woken) = mpsc::sync_channel(1);
    let waker = Waker::from(Arc::new(SendsOnWake(sender)));
    let mut context = Context::from_waker(&waker);
    let (go, may_go) = mpsc::channel();
    let mut call: Pin<Box<dyn Future<Output = CallOutcome>>> =
        Box::pin(calls(LIMIT).on_worker().outcome_async(|_| async move {
            may_go.recv().expect("who goes first");
            Ok(7)
        }));
    check(20, call.as_mut().poll(&mut context).is_pending());
    go.send(()).expect("an operation");
    // The wake-up means that the result is published.
    woken.recv().expect("a wake-up");
    say_ready();
    wait_for_input();
    let outcome = call.as_mut().poll(&mut context);
    check(21, matches!(outcome, Poll::Ready(Outcome::Success(7))));
    check(22, events.load(Ordering::SeqCst) == 0);
    later_calls_work();
}

#[cfg(unix)]
mod showered {
    use std::future::{Future, pending};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    use signal_hook::consts::SIGUSR1;
    use timeout_runtime::net::CancellableStream;
    use timeout_runtime::{CallStatus, CancelToken, Cause, Outcome, TimeoutError, workers};

    use super::{LONG, SendsOnWake, calls, check, say_ready};

    /// Lower bound of each wait.
    const BRIEF: Duration = Duration::from_millis(30);

    /// One wait of each kind on this thread, which also handles the signals.
    fn round() {
        let sync = calls(LONG).outcome(|_| {
            thread::sleep(BRIEF);
            Ok::<_, TimeoutError>(7)
        });
        check(30, matches!(sync, Outcome::Success(7)));

        let start = Instant::now();
        let expires = calls(BRIEF).outcome(|token| token.sleep(LONG));
        // On a busy machine no worker may have taken the call in time.
        check(
            31,
            matches!(&expires, Outcome::TimedOut(_) | Outcome::NotStarted(_)),
        );
        check(32, start.elapsed() >= BRIEF);

        let start = Instant::now();
        let sleeps = calls(LONG).inline().outcome(|token| token.sleep(BRIEF));
        check(
            33,
            sleeps.status() == CallStatus::Ok && start.elapsed() >= BRIEF,
        );

        let start = Instant::now();
        let expires = calls(BRIEF).inline().outcome(|token| token.sleep(LONG));
        check(34, matches!(expires, Outcome::TimedOut(_)));
        check(35, start.elapsed() >= BRIEF);

        let token = CancelToken::new();
        let start = Instant::now();
        check(36, token.wait_timeout(BRIEF).is_none());
        check(37, start.elapsed() >= BRIEF);
        let cancels = token.clone();
        let canceller = thread::spawn(move || {
            thread::sleep(BRIEF);
            cancels.cancel();
        });
        check(38, token.wait_timeout(LONG) == Some(Cause::Cancelled));
        canceller.join().expect("a canceller");

        let start = Instant::now();
        let polled =
            block_on(calls(BRIEF).outcome_async(|_| pending::<Result<u32, TimeoutError>>()));
        check(39, matches!(polled, Outcome::TimedOut(_)));
        check(40, start.elapsed() >= BRIEF);

        check(44, workers::drain(LONG) == 0);
        let (leave, may_leave) = mpsc::channel::<()>();
        let left = calls(BRIEF).outcome(move |_| {
            let _ = may_leave.recv();
            Ok::<_, TimeoutError>(7)
        });
        let start = Instant::now();
        let still_there = workers::drain(BRIEF);
        let took = start.elapsed();
        if matches!(left, Outcome::TimedOut(_)) {
            check(41, still_there == 1 && took >= BRIEF);
        }
        drop(leave);
        check(42, workers::drain(LONG) == 0);

        let (stream, mut peer) = UnixStream::pair().expect("two sockets");
        let writer = thread::spawn(move || {
            thread::sleep(BRIEF);
            peer.write_all(b"7").expect("a reader");
        });
        let mut stream = CancellableStream::new(stream, &CancelToken::new());
        check(45, matches!(stream.read(&mut [0; 8]), Ok(1)));
        writer.join().expect("a writer");
    }

    /// Polls on this thread, which blocks on a channel between polls.
    fn block_on<O>(call: impl Future<Output = O>) -> O {
        let (sender, woken) = mpsc::sync_channel(1);
        let waker = Waker::from(Arc::new(SendsOnWake(sender)));
        let mut call = pin!(call);
        loop {
            match call.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => woken.recv().expect("a wake-up"),
            }
        }
    }

    /// Runs at least three rounds, and until this many signals were handled.
    pub(super) fn run(signals: usize) {
        let flag = Arc::<AtomicBool>::default();
        signal_hook::flag::register(SIGUSR1, Arc::clone(&flag)).expect("a handler");
        let count = Arc::<AtomicUsize>::default();
        let counts = Arc::clone(&count);
        thread::spawn(move || {
            loop {
                let news = flag.swap(false, Ordering::SeqCst);
                counts.fetch_add(usize::from(news), Ordering::SeqCst);
                thread::yield_now();
            }
        });
        say_ready();
        let mut rounds = 0;
        while rounds < 3 || count.load(Ordering::SeqCst) < signals {
            round();
            rounds += 1;
        }
    }
}

#[cfg(not(unix))]
mod showered {
    pub(super) fn run(_: usize) {}
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(how), Some(what)) = (arguments.next(), arguments.next()) else {
        return ExitCode::from(64);
    };
    match (how.as_str(), what.as_str()) {
        ("stopped", "ended") => ended_before_the_stop(),
        ("stopped", case) => stopped(case),
        ("showered", signals) => showered::run(signals.parse().expect("a number")),
        _ => return ExitCode::from(64),
    }
    ExitCode::SUCCESS
}
