//! After a peak, memory use follows the number of live objects, in whatever order the others ended.

use crate::in_use;
use crate::own_process::in_own_process;
use crate::support;
use std::future::Future;
use std::pin::Pin;

use fastrand::Rng;
use support::{Gate, Way, poll_once};
use timeout_runtime::{CallContext, CancelToken, Timeout, TimeoutError, workers};
use tokio::sync::oneshot;

/// The number of objects of one kind at the peak.
const PEAK: usize = 30_000;

/// The memory that may remain in use after the peak: far less than one table with `PEAK` places.
const LEFT: usize = 64 << 10;

/// The order in which objects end.
#[derive(Clone, Copy, Debug)]
enum Order {
    FirstInFirstOut,
    LastInFirstOut,
    Random,
}

const EVERY_ORDER: [Order; 3] = [Order::FirstInFirstOut, Order::LastInFirstOut, Order::Random];

impl Order {
    fn sort<T>(self, things: &mut [T]) {
        match self {
            // Objects are ended from the back.
            Self::FirstInFirstOut => things.reverse(),
            Self::LastInFirstOut => {}
            Self::Random => Rng::with_seed(7).shuffle(things),
        }
    }
}

/// Makes `PEAK` objects and ends them in every order: first all but three, then the first, the last
/// and one between. Returns a message for each excess.
fn peak<T>(what: &str, mut make: impl FnMut(usize) -> T, end: impl Fn(T)) -> Vec<String> {
    let mut excess = Vec::new();
    // Memory that is allocated once and kept for good does not belong to the peak.
    let first = make(0);
    end(first);
    let before = in_use();
    for order in EVERY_ORDER {
        let mut things: Vec<_> = (0..PEAK).map(&mut make).map(Some).collect();
        let list = things.capacity() * size_of::<Option<T>>();
        let most = in_use().saturating_sub(before + list);
        assert!(most > 16 * PEAK, "{what}: {most} bytes are no peak");
        let survivors = [0, PEAK / 2, PEAK - 1].map(|place| things[place].take());
        let mut rest: Vec<_> = things.into_iter().flatten().collect();
        order.sort(&mut rest);
        while let Some(thing) = rest.pop() {
            end(thing);
        }
        drop(rest);
        let with_three = in_use().saturating_sub(before);
        survivors.into_iter().flatten().for_each(&end);
        let with_none = in_use().saturating_sub(before);
        if with_three.max(with_none) > LEFT {
            excess.push(format!(
                "{what}, {order:?}: of {most} bytes, {with_three} are in use for three survivors, \
                 {with_none} for none"
            ));
        }
    }
    excess
}

/// A pending call that inherits from `parent`, with a timer for its deadline.
fn pending_call(parent: &CancelToken, n: usize) -> Pin<Box<dyn Future<Output = ()>>> {
    // More different deadlines than the timer has lists.
    let secs = 3600 + (n * 7) % 40;
    let policy = Timeout::new(
        "memory::pending",
        std::time::Duration::from_secs(secs as u64),
    );
    let policy = policy.unwrap();
    let mut call = Box::pin(async move {
        let call = policy.call_async(|_| std::future::pending::<Result<(), TimeoutError>>());
        let _ = call.await;
    });
    let context = CallContext::detached().with_token(parent);
    context.run(|| assert!(poll_once(&mut call, &Gate::new()).is_pending()));
    call
}

/// An operation whose call was dropped after its start; it ends when the sender is dropped.
fn abandoned(policy: &Timeout, run: impl Fn()) -> oneshot::Sender<()> {
    let (ends, ended) = oneshot::channel();
    let mut call = Way::AsyncTask.start(policy, |_| async move {
        let _ = ended.await;
        Ok::<_, TimeoutError>(())
    });
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    run();
    ends
}

/// Tables used to keep the memory of their largest size: 12 MB after 300 000 children.
// Fails if a table keeps its gaps or its memory, or searches a value in one place only.
#[test]
fn memory_follows_the_live_objects() {
    in_own_process(|| {
        let parent = CancelToken::new();
        let mut excess = peak("children", |_| parent.child(), drop);
        excess.extend(peak("callbacks", |_| parent.on_cancel(|| {}), drop));
        let wait = |_| {
            let mut waiter = Box::pin(parent.clone().cancelled_owned());
            assert!(poll_once(&mut waiter, &Gate::new()).is_pending());
            waiter
        };
        excess.extend(peak("waiters", wait, drop));
        excess.extend(peak("calls", |n| pending_call(&parent, n), drop));

        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let run = || runtime.block_on(tokio::task::yield_now());
        let policy = support::limit("memory::abandoned", 3_600_000).with_max_abandoned(usize::MAX);
        let abandon = |_| {
            let _inside = runtime.enter();
            abandoned(&policy, run)
        };
        let end = |ends| {
            drop(ends);
            run();
        };
        excess.extend(peak("abandoned operations", abandon, end));
        assert_eq!(workers::abandoned(), []);
        assert!(excess.is_empty(), "{}", excess.join("\n"));
    });
}
