//! Tokens and calls at the very end of a thread, in the destructors of its thread-locals, are as good as elsewhere. A file of its own:
//! what goes wrong there ends the process.

mod support;

use std::cell::RefCell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{Gate, SHORT, SOON, Way, block_on, limit, until_fired};
use timeout_runtime::workers::Settings;
use timeout_runtime::{CancelToken, Cause, Outcome, TimeoutError};

/// Does something when it is dropped.
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

/// Runs `before` on a thread whose last deed is to do what `before` gives, when all other thread-locals are gone: they go in the
/// order opposite to that in which they came.
fn at_the_end_of_a_thread<T: FnOnce() + 'static>(before: impl FnOnce() -> T + Send + 'static) {
    let small = thread::Builder::new().stack_size(256 << 10);
    let thread = small.spawn(move || {
        AT_END.with_borrow_mut(|at_end| at_end.0 = None);
        let act = before();
        AT_END.with_borrow_mut(|at_end| at_end.0 = Some(Box::new(act)));
    });
    thread.unwrap().join().unwrap();
}

/// A token that holds many, each the child of the one before.
fn leaf() -> CancelToken {
    let mut last = CancelToken::new();
    for _ in 0..200_000 {
        last = last.child();
    }
    last
}

/// Guards against a list of what is left to drop that has itself gone before.
#[test]
fn a_chain_is_dropped_by_the_end_of_its_thread() {
    at_the_end_of_a_thread(|| {
        drop(CancelToken::new().child());
        let last = leaf();
        move || drop(last)
    });
}

#[test]
fn tokens_can_be_used_by_the_end_of_a_thread() {
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
            sender.send((waits, below.cause(), ran.is_open())).unwrap();
        }
    });
    assert_eq!(
        seen.recv_timeout(SOON),
        Ok((None, Some(Cause::Cancelled), true))
    );
}

/// Guards against a call that asks a thread-local for what is there no more.
#[test]
fn calls_can_be_made_by_the_end_of_a_thread() {
    let (sender, endings) = mpsc::channel();
    at_the_end_of_a_thread(|| {
        let call = |way: Way| {
            let succeeds = way.run(&limit("thread_ends::succeeds", 60_000), |token| {
                let inside = limit("thread_ends::inside", 60_000);
                inside.outcome_inline(|_| token.check()).into_result()?;
                inside.outcome(|_| Ok::<_, TimeoutError>(7)).into_result()
            });
            let times_out = way.run(&limit("thread_ends::times_out", SHORT), |t| until_fired(&t));
            (way, succeeds, times_out)
        };
        let ways = [Way::SyncWorker, Way::SyncInline];
        // The threads that they need, and what they keep per thread, are there before.
        drop(ways.map(call));
        move || sender.send(ways.map(call)).unwrap()
    });
    for (way, succeeds, times_out) in endings.recv_timeout(SOON).unwrap() {
        assert_eq!(succeeds.success(), Some(7), "{way:?}");
        assert!(
            matches!(times_out, Outcome::TimedOut(_)),
            "{way:?}: {times_out:?}"
        );
    }
}

/// Guards against a worker that is lost with the destructors of what an operation left on it.
#[test]
fn a_worker_that_ends_may_make_calls() {
    let (sender, endings) = mpsc::channel();
    // A worker that is idle leaves at once.
    Settings::new().keep_alive(Duration::ZERO).apply();
    let outcome = limit("thread_ends::worker", 60_000).outcome(move |_| {
        let act = move || {
            let inside = limit("thread_ends::in_destructor", 60_000);
            let ending = inside.outcome(|_| Ok::<_, TimeoutError>(7));
            sender.send(ending.success()).unwrap();
        };
        AT_END.with_borrow_mut(|at_end| at_end.0 = Some(Box::new(act)));
        Ok::<_, TimeoutError>(7)
    });
    assert_eq!(outcome.success(), Some(7));
    assert_eq!(endings.recv_timeout(SOON), Ok(Some(7)));
}
