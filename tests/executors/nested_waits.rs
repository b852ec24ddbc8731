//! A wait of the runtime inside another wait neither loses nor consumes a wake-up for other code.

use crate::support;
use std::future::Future;
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::join;
use support::{Gate, SOON, block_on, limit};
use timeout_runtime::{CancelToken, TimeoutError, timeout};

/// A way to block a thread until it is released.
#[derive(Clone, Copy, Debug)]
enum Blocking {
    AnnotatedCall,
    TokenSleep,
    TokenWait,
    Channel,
    ScopedThread,
    Park,
}

const EVERY_BLOCKING: [Blocking; 6] = [
    Blocking::AnnotatedCall,
    Blocking::TokenSleep,
    Blocking::TokenWait,
    Blocking::Channel,
    Blocking::ScopedThread,
    Blocking::Park,
];

/// Releases a blocking wait.
struct Release {
    gate: Gate,
    token: CancelToken,
    sender: mpsc::Sender<()>,
}

#[timeout(name = "nested_waits::rows", secs = 60)]
fn rows(started: Gate, released: Gate) -> Result<u32, TimeoutError> {
    started.open();
    released.wait();
    Ok(1)
}

impl Blocking {
    /// Returns a wait, which opens `started` when it begins, and the handle that releases it.
    fn begin(self, started: Gate) -> (impl FnOnce() + Send + 'static, Release) {
        let (sender, receiver) = mpsc::channel();
        let release = Release {
            gate: Gate::new(),
            token: CancelToken::new(),
            sender,
        };
        let (gate, token) = (release.gate.clone(), release.token.clone());
        let wait = move || {
            if !matches!(self, Self::AnnotatedCall) {
                started.open();
            }
            match self {
                Self::AnnotatedCall => assert_eq!(rows(started, gate).unwrap(), 1),
                Self::TokenSleep => drop(token.sleep(Duration::MAX)),
                Self::TokenWait => drop(token.wait_timeout(Duration::MAX)),
                Self::Channel => receiver.recv().unwrap(),
                Self::ScopedThread => thread::scope(|scope| drop(scope.spawn(|| gate.wait()))),
                // Other code that parks this thread and expects spurious wake-ups.
                Self::Park => {
                    while !gate.is_open() {
                        thread::park_timeout(Duration::from_millis(1));
                    }
                }
            }
        };
        (wait, release)
    }
}

impl Release {
    fn release(self) {
        self.gate.open();
        self.token.cancel();
        // Sending fails for every other kind of wait, which has dropped the receiver.
        let _ = self.sender.send(());
    }
}

/// Sends a value to one half of a joined future while the other half blocks the thread.
fn wakes_a_blocked_executor<F>(blocking: Blocking, run: impl FnOnce(BoxedReport) -> F)
where
    F: Future<Output = Result<u32, TimeoutError>>,
{
    let started = Gate::new();
    let (wait, release) = blocking.begin(started.clone());
    let (sender, receiver) = oneshot::channel();
    let other = thread::spawn(move || {
        started.wait();
        sender.send(1).unwrap();
        release.release();
    });
    let report: BoxedReport = Box::new((receiver, Box::new(wait)));
    let result = block_on(run(report));
    assert_eq!(result.unwrap(), 1, "{blocking:?}");
    other.join().unwrap();
}

type BoxedReport = Box<(oneshot::Receiver<u32>, Box<dyn FnOnce() + Send>)>;

async fn joined(report: BoxedReport) -> Result<u32, TimeoutError> {
    let (receiver, wait) = *report;
    let (value, ()) = join!(async { receiver.await.unwrap() }, async { wait() });
    Ok(value)
}

/// The executor of a worker used to wait with `park`, and the inner wait consumed its wake-up.
// Fails if all waits of a thread share one parker.
#[test]
fn a_future_on_a_worker_is_woken_while_one_of_its_polls_blocks() {
    #[timeout(name = "nested_waits::report", secs = 20, run = "worker")]
    async fn report(parts: BoxedReport) -> Result<u32, TimeoutError> {
        joined(parts).await
    }

    for blocking in EVERY_BLOCKING {
        wakes_a_blocked_executor(blocking, report);
        let policy = limit("nested_waits::policy", 20_000);
        wakes_a_blocked_executor(blocking, |parts| {
            policy.on_worker().call_async(move |_| joined(parts))
        });
    }
}

/// The name of a wait of ours, and the wait itself, which unparks the given thread meanwhile.
type NamedWait = (&'static str, fn(Thread));

/// Asserts that the wake-up of the thread is not consumed. Otherwise the park takes `SOON`.
fn assert_unparked(what: &str) {
    let start = Instant::now();
    thread::park_timeout(SOON);
    assert!(start.elapsed() < SOON, "{what}: the wake-up was consumed");
}

/// Waits used to park the caller's thread, which consumed an `unpark` for other code.
#[test]
fn a_wait_does_not_consume_a_wake_up_of_the_callers_thread() {
    let waits: [NamedWait; 3] = [
        ("a call", |caller| {
            let unparked = limit("nested_waits::unpark", 60_000).call(move |token| {
                // The caller is parked by now, or parks later. Neither must consume this wake-up.
                token.sleep(Duration::from_millis(20))?;
                caller.unpark();
                token.sleep(Duration::from_millis(20))
            });
            unparked.unwrap();
        }),
        ("a token's wait", |caller| {
            let token = CancelToken::new();
            let canceller = token.clone();
            let other = thread::spawn(move || {
                caller.unpark();
                canceller.cancel();
            });
            assert!(token.wait_timeout(Duration::MAX).is_some());
            other.join().unwrap();
        }),
        ("a token's sleep", |caller| {
            let token = CancelToken::new();
            let canceller = token.clone();
            let other = thread::spawn(move || {
                caller.unpark();
                canceller.cancel();
            });
            token.sleep(Duration::MAX).unwrap_err();
            other.join().unwrap();
        }),
    ];
    for (what, wait) in waits {
        wait(thread::current());
        assert_unparked(what);
        // A wake-up that came before the wait stays too.
        thread::current().unpark();
        let token = CancelToken::new();
        assert_eq!(token.wait_timeout(Duration::from_millis(5)), None);
        assert_unparked(what);
    }
}
