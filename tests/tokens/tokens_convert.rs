//! With the feature `tokio-util`, tokens of either kind stop what waits for the other, and nothing is left of a link when either side is gone.

use crate::support;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{EVERY_WAY, Gate, block_on, eventually, limit, short_limit, until_fired};
use timeout_runtime::integrations::tokio_util::{from_tokio, to_tokio};
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome, Timeout, TimeoutError};
use tokio_util::sync::CancellationToken;

#[test]
fn their_token_stops_calls_of_every_way_to_run() {
    for way in EVERY_WAY {
        let theirs = CancellationToken::new();
        let ours = from_tokio(&theirs);
        assert!(!ours.is_cancelled());
        let begun = Gate::new();
        let has_begun = begun.clone();
        let cancels = std::thread::spawn(move || {
            has_begun.wait();
            theirs.cancel();
        });
        let outcome = CallContext::detached().with_token(&ours).run(|| {
            way.run(&limit("tokens::theirs", 60_000), move |token| {
                begun.open();
                until_fired(&token)
            })
        });
        cancels.join().unwrap();
        assert!(
            matches!(outcome, Outcome::Cancelled(_)),
            "{way:?}: {outcome:?}"
        );
        assert_eq!(ours.cause(), Some(Cause::Cancelled));
    }
}

#[test]
fn ours_reads_cancelled_when_theirs_was_and_not_the_other_way_round() {
    let root = CancellationToken::new();
    let theirs = root.child_token();
    let ours = from_tokio(&theirs);
    let below = ours.child();
    let other = from_tokio(&theirs);
    other.cancel();
    assert!(!theirs.is_cancelled() && !ours.is_cancelled());
    root.cancel();
    assert!(ours.is_cancelled() && below.is_cancelled());
    assert!(
        from_tokio(&theirs).is_cancelled(),
        "of one that was cancelled before"
    );
    assert!(below.check().unwrap_err().is_cancelled());
}

/// Guards against callbacks that are lost, or that run where tokio-util's own locks are held.
#[test]
fn callbacks_of_ours_run_and_may_use_theirs() {
    let root = CancellationToken::new();
    let theirs = root.child_token();
    let ours = from_tokio(&theirs);
    let called = Gate::new();
    let calls = called.clone();
    let _registration = ours.on_cancel({
        let root = root.clone();
        move || {
            assert!(root.child_token().is_cancelled());
            root.cancel();
            calls.open();
        }
    });
    root.cancel();
    called.wait();
    block_on(ours.cancelled());
}

#[test]
fn our_token_stops_what_waits_for_theirs_by_a_deadline_too() {
    let ours = CancelToken::new();
    let theirs = to_tokio(&ours);
    let below = theirs.child_token();
    assert!(!theirs.is_cancelled());
    ours.cancel();
    assert!(theirs.is_cancelled() && below.is_cancelled());
    assert!(
        to_tokio(&ours).is_cancelled(),
        "of one that was cancelled before"
    );

    let alone = CancelToken::new();
    to_tokio(&alone).cancel();
    assert!(!alone.is_cancelled());

    let policy = Timeout::new("tokens::deadline", short_limit()).unwrap();
    let waits = policy.outcome(|token| {
        let theirs = to_tokio(&token);
        block_on(theirs.cancelled());
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(waits, Outcome::TimedOut(_)), "{waits:?}");
}

/// Tells how many tokens of tokio-util's are kept by links: what is dropped with the last of its clones.
struct Kept(Arc<AtomicUsize>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Guards against links that are kept by a token that lives on, a million of them by the end of a day.
#[test]
fn a_link_goes_with_either_side() {
    // Theirs lives on: its waiters go with ours.
    let theirs = CancellationToken::new();
    let weak = {
        let ours = from_tokio(&theirs);
        let dropped = Arc::new(AtomicUsize::new(0));
        let kept = Kept(Arc::clone(&dropped));
        ours.on_cancel(move || drop(kept)).forget();
        let below = ours.child();
        drop(ours);
        assert_eq!(dropped.load(Ordering::SeqCst), 0, "kept by the one below");
        drop(below);
        dropped
    };
    assert_eq!(weak.load(Ordering::SeqCst), 1, "ours is gone");
    theirs.cancel();

    // Ours lives on after theirs, and can still be cancelled.
    let ours = from_tokio(&CancellationToken::new());
    assert!(!ours.is_cancelled());
    ours.cancel();

    // Ours lives on, and the link to theirs is dropped: it is cancelled by nobody.
    let ours = CancelToken::new();
    let link = to_tokio(&ours);
    let theirs = link.clone();
    drop(link);
    ours.cancel();
    assert!(!theirs.is_cancelled());
    // The link outlives ours.
    let link = to_tokio(&CancelToken::new());
    assert!(!link.is_cancelled());
}

/// Cancelling and linking at once misses no signal.
#[test]
fn no_signal_is_missed_by_a_link_that_is_made_meanwhile() {
    for _ in 0..2_000 {
        let theirs = CancellationToken::new();
        let canceller = theirs.clone();
        let cancels = std::thread::spawn(move || canceller.cancel());
        let ours = from_tokio(&theirs);
        let link = to_tokio(&ours);
        cancels.join().unwrap();
        assert!(ours.is_cancelled());
        eventually("theirs hears it", || link.is_cancelled());
    }
}
