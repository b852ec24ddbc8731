//! Tokens and calls work in the destructors of thread-locals, at the very end of a thread.
//!
//! A panic in such a destructor aborts the process, so each test has a process of its own.

// Tests of this file fail if the frames or the muted functions of a thread are in a list with a
// destructor: that list is gone while other thread-locals are destroyed.

use crate::own_process::in_own_process;
use crate::support;
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, SystemTime};

use support::{
    Gate, OnDrop, SOON, Way, assert_timed_out, block_on, limit, poll_once, short, until_cancelled,
};
use timeout_runtime::workers::Settings;
use timeout_runtime::{
    CancelToken, Cause, Timeout, TimeoutError, add_listener, add_propagator, check,
};

/// Runs a closure when it is dropped.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
}

/// Runs `before` on a thread, and the closure that it returns at the thread's end.
/// By then all other thread-locals are destroyed: their order is the reverse of their creation.
fn at_the_end_of_a_thread<T: FnOnce() + 'static>(before: impl FnOnce() -> T + Send + 'static) {
    let small = thread::Builder::new().stack_size(256 << 10);
    let thread = small.spawn(move || {
        AT_END.with_borrow_mut(|at_end| at_end.0 = None);
        let act = before();
        AT_END.with_borrow_mut(|at_end| at_end.0 = Some(Box::new(act)));
    });
    thread.unwrap().join().unwrap();
}

/// The last of many tokens, each the child of the one before.
fn leaf() -> CancelToken {
    let mut last = CancelToken::new();
    for _ in 0..200_000 {
        last = last.child();
    }
    last
}

/// The list of pending drops used to be destroyed before the chain.
#[test]
fn a_chain_of_tokens_can_be_dropped_at_the_end_of_a_thread() {
    in_own_process(|| {
        at_the_end_of_a_thread(|| {
            drop(CancelToken::new().child());
            let last = leaf();
            move || drop(last)
        });
    });
}

#[test]
fn tokens_can_be_used_at_the_end_of_a_thread() {
    in_own_process(|| {
        let (sender, seen) = mpsc::channel();
        at_the_end_of_a_thread(|| {
            let root = CancelToken::new();
            let waiting = root.child();
            let kept = root.on_cancel(|| {});
            move || {
                let below = waiting.child();
                let (ran, runs) = (Gate::new(), Gate::new());
                let opens = ran.clone();
                below.on_cancel(move || opens.open()).forget();
                let waits = below.wait_timeout(Duration::from_millis(1));
                root.cancel();
                block_on(below.cancelled());
                drop(kept);
                drop(below.on_cancel(move || runs.open()));
                ran.wait();
                sender.send((waits, below.cause())).unwrap();
            }
        });
        assert_eq!(seen.recv_timeout(SOON), Ok((None, Some(Cause::Cancelled))));
    });
}

/// A call must not need a thread-local that is already destroyed.
#[test]
fn calls_can_be_made_at_the_end_of_a_thread() {
    in_own_process(|| {
        let (sender, outcomes) = mpsc::channel();
        at_the_end_of_a_thread(|| {
            let call = |way: Way| {
                let succeeds = way.run(&limit("thread_ends::succeeds", 60_000), |token| {
                    let inside = limit("thread_ends::inside", 60_000);
                    inside.inline().call(|_| token.check())?;
                    inside.call(|_| Ok::<_, TimeoutError>(7))
                });
                let times_out = way.run(&limit("thread_ends::times_out", short()), |t| {
                    until_cancelled(&t)
                });
                (way, succeeds, times_out)
            };
            let ways = [Way::SyncWorker, Way::SyncInline];
            // Start the workers and create the thread-locals of this thread.
            drop(ways.map(call));
            move || sender.send(ways.map(call)).unwrap()
        });
        for (way, succeeds, times_out) in outcomes.recv_timeout(SOON).unwrap() {
            assert_eq!(succeeds.success(), Some(7), "{way:?}");
            assert_timed_out(way, &times_out);
        }
    });
}

/// A worker was lost when the destructor of a thread-local that an operation had left made a call.
#[test]
fn destructors_of_thread_locals_of_a_worker_may_make_calls() {
    in_own_process(|| {
        let (sender, outcomes) = mpsc::channel();
        // An idle worker ends immediately.
        Settings {
            keep_alive: Duration::ZERO,
            ..Settings::current()
        }
        .apply();
        let outcome = limit("thread_ends::worker", 60_000).outcome(move |_| {
            let act = move || {
                let inside = limit("thread_ends::in_destructor", 60_000);
                let inside = inside.outcome(|_| Ok::<_, TimeoutError>(7));
                sender.send(inside.success()).unwrap();
            };
            AT_END.with_borrow_mut(|at_end| at_end.0 = Some(Box::new(act)));
            Ok::<_, TimeoutError>(7)
        });
        assert_eq!(outcome.success(), Some(7));
        assert_eq!(outcomes.recv_timeout(SOON), Ok(Some(7)));
    });
}

thread_local! {
    /// Whether the registered functions count their calls on this thread and make calls themselves.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// Makes one call with each runner that needs no executor.
fn call_with_each_runner(timeout: &Timeout) {
    let on_worker = timeout.outcome(|_| Ok::<_, TimeoutError>(7));
    assert_eq!(on_worker.success(), Some(7));
    let inline = timeout.inline().outcome(|_| Ok::<_, TimeoutError>(7));
    assert_eq!(inline.success(), Some(7));
    let polled = block_on(timeout.outcome_async(|_| async { Ok::<_, TimeoutError>(7) }));
    assert_eq!(polled.success(), Some(7));
}

/// The policy of the calls that a registered function makes.
type Policy = Arc<OnceLock<Timeout>>;

/// A function to register that makes calls with `policy`, and the number of its calls.
fn counted(policy: &Policy) -> (Arc<AtomicUsize>, impl Fn() + Send + Sync + 'static) {
    let count = Arc::<AtomicUsize>::default();
    let function = {
        let (count, policy) = (Arc::clone(&count), Arc::clone(policy));
        move || {
            if COUNTS.get() {
                count.fetch_add(1, Ordering::SeqCst);
                call_with_each_runner(policy.get().unwrap());
            }
        }
    };
    (count, function)
}

/// Makes calls on a thread, and again when its other thread-locals are destroyed.
fn call_at_the_end_of_a_thread(policy: &Policy, timeout: Timeout) {
    policy.set(timeout.clone()).unwrap();
    at_the_end_of_a_thread(move || {
        call_with_each_runner(&timeout);
        move || {
            COUNTS.set(true);
            call_with_each_runner(&timeout);
        }
    });
}

/// The stack used to overflow: a listener received the events of its own calls, recursively.
#[test]
fn a_listener_does_not_get_its_own_events_at_the_end_of_a_thread() {
    in_own_process(|| {
        let policy = Policy::default();
        let (count, function) = counted(&policy);
        let _listener = add_listener(move |_| function());
        call_at_the_end_of_a_thread(&policy, limit("thread_ends::listener", 60_000));
        assert_eq!(count.load(Ordering::SeqCst), 3);
    });
}

/// The stack used to overflow: a policy's listener received the events of its own calls.
#[test]
fn the_listener_of_a_policy_does_not_get_its_own_events_at_the_end_of_a_thread() {
    in_own_process(|| {
        let policy = Policy::default();
        let (count, function) = counted(&policy);
        let calls = limit("thread_ends::own_listener", 60_000).with_listener(move |_| function());
        call_at_the_end_of_a_thread(&policy, calls);
        assert_eq!(count.load(Ordering::SeqCst), 3);
    });
}

/// The stack used to overflow: a propagator was called for its own calls, recursively.
#[test]
fn a_propagator_is_not_called_for_its_own_calls_at_the_end_of_a_thread() {
    in_own_process(|| {
        let policy = Policy::default();
        let (count, function) = counted(&policy);
        let _propagator = add_propagator(move || {
            function();
            || ()
        });
        call_at_the_end_of_a_thread(&policy, limit("thread_ends::propagator", 60_000));
        let count = count.load(Ordering::SeqCst);
        assert_eq!(count, 1, "one of the calls runs on another thread");
    });
}

/// The stack used to overflow: a policy's clock was read for the events of its own calls.
#[test]
fn the_clock_of_a_policy_is_not_read_for_its_own_calls_at_the_end_of_a_thread() {
    in_own_process(|| {
        let policy = Policy::default();
        let (count, function) = counted(&policy);
        let _listener = add_listener(|_| {});
        let calls = limit("thread_ends::clock", 60_000).with_clock(move || {
            function();
            SystemTime::now()
        });
        call_at_the_end_of_a_thread(&policy, calls);
        assert_eq!(count.load(Ordering::SeqCst), 3);
    });
}

/// The operation used to be dropped outside its call.
#[test]
fn an_inline_operation_is_dropped_inside_its_call_at_the_end_of_a_thread() {
    in_own_process(|| {
        let (sender, seen) = mpsc::channel();
        let start = move || {
            let sender = sender.clone();
            let guard = OnDrop(move || sender.send(check().is_err()).unwrap());
            let mut call = Box::pin(limit("thread_ends::dropped", 60_000).outcome_async(
                |_| async {
                    let _guard = guard;
                    pending::<Result<(), TimeoutError>>().await
                },
            ));
            assert!(matches!(poll_once(&mut call, &Gate::new()), Poll::Pending));
            call
        };
        at_the_end_of_a_thread(move || {
            // Create the thread-locals of this thread.
            drop(start());
            let call = start();
            move || drop(call)
        });
        assert_eq!(seen.iter().collect::<Vec<_>>(), [true, true]);
    });
}
