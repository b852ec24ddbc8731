//! Measures the cancellation of tokens with many children or waiting futures: rows T5 and T6.

use std::hint::spin_loop;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use timeout_runtime::CancelToken;
use tokio_util::sync::CancellationToken;

use crate::finding::Finding;
use crate::group::Group;
use crate::measured::{Figure, Measured, nanoseconds};
use crate::meter::Cost;
use crate::options::Options;

const MANY: usize = 100_000;
const WARM_UP: usize = 1000;

/// The common interface of the two kinds of token.
trait Token: Clone + Send + 'static {
    fn new() -> Self;
    fn child(&self) -> Self;
    fn cancel(&self);
    fn is_cancelled(&self) -> bool;
    fn cancelled(&self) -> impl Future<Output = ()>;
}

impl Token for CancelToken {
    fn new() -> Self {
        Self::new()
    }

    fn child(&self) -> Self {
        self.child()
    }

    fn cancel(&self) {
        self.cancel();
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled()
    }

    async fn cancelled(&self) {
        self.cancelled().await;
    }
}

impl Token for CancellationToken {
    fn new() -> Self {
        Self::new()
    }

    fn child(&self) -> Self {
        self.child_token()
    }

    fn cancel(&self) {
        self.cancel();
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled()
    }

    async fn cancelled(&self) {
        self.cancelled().await;
    }
}

/// Measures the median duration of `times` cancellations of a token with `count` children.
fn children<T: Token>(count: usize, times: usize) -> Measured {
    median((0..times).map(|_| {
        let parent = T::new();
        let children: Vec<_> = (0..count).map(|_| parent.child()).collect();
        let begun = Instant::now();
        parent.cancel();
        let took = begun.elapsed();
        assert!(children.iter().all(T::is_cancelled));
        took
    }))
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Measures the cancellation of a token with `MANY` waiting futures.
fn waiters<T: Token>() -> Measured {
    let token = T::new();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut waiting: Vec<Pin<Box<_>>> = (0..MANY).map(|_| Box::pin(token.cancelled())).collect();
    for future in &mut waiting {
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    let begun = Instant::now();
    token.cancel();
    let took = begun.elapsed();
    assert_eq!(woken.0.load(Ordering::Relaxed), MANY);
    median([took])
}

/// Measures the longest reading by another thread during a cancellation.
fn stall<T: Token>() -> Measured {
    let parent = T::new();
    let children: Vec<_> = (0..MANY).map(|_| parent.child()).collect();
    let readings = Arc::new(AtomicUsize::new(0));
    let reader = thread::spawn({
        let (token, readings) = (parent.clone(), Arc::clone(&readings));
        move || {
            let mut longest = Duration::ZERO;
            loop {
                let begun = Instant::now();
                let cancelled = token.is_cancelled();
                longest = longest.max(begun.elapsed());
                if cancelled {
                    return longest;
                }
                // Ignores delays of the machine before the cancellation.
                if readings.fetch_add(1, Ordering::Relaxed) < WARM_UP {
                    longest = Duration::ZERO;
                }
            }
        }
    });
    // Waits until the other thread is running, also on a busy machine.
    while readings.load(Ordering::Relaxed) < WARM_UP {
        spin_loop();
    }
    parent.cancel();
    drop(children);
    median([reader.join().expect("reading does not panic")])
}

fn median(samples: impl IntoIterator<Item = Duration>) -> Measured {
    let samples: Vec<_> = samples.into_iter().map(nanoseconds).collect();
    Measured::new(samples, 1, Duration::ZERO, Cost::default()).without_cost()
}

pub(crate) fn cancelling(options: &Options) -> Vec<Finding> {
    let mut group = Group::new(options, "1000 children");
    let ours = group.lane(|| children::<CancelToken>(1000, 20));
    let peer = group.lane(|| children::<CancellationToken>(1000, 20));
    group.ratio("T5a", Figure::Median, ours, peer);
    let mut findings = group.run(21);

    let mut group = Group::new(options, "100 000 children");
    let ours = group.lane(|| children::<CancelToken>(MANY, 1));
    let peer = group.lane(|| children::<CancellationToken>(MANY, 1));
    group.ratio("T5b", Figure::Median, ours, peer);
    let ours = group.lane(waiters::<CancelToken>);
    let peer = group.lane(waiters::<CancellationToken>);
    group.ratio("T5c", Figure::Median, ours, peer);
    let ours = group.lane(stall::<CancelToken>);
    let peer = group.lane(stall::<CancellationToken>);
    group.ratio("T6", Figure::Median, ours, peer);
    findings.extend(group.run(15));
    findings
}
