//! Feature `tokio-util`: each kind of token cancels the other kind, and dropping either side
//! removes the link.

use crate::support;
use std::time::Duration;

use support::{Drops, EVERY_WAY, Gate, block_on, eventually, limit, short_limit, until_cancelled};
use timeout_runtime::integrations::tokio_util::LinkedToken;
use timeout_runtime::{CallContext, CancelToken, Cause, Deadline, Outcome, Timeout, TimeoutError};
use tokio_util::sync::CancellationToken;

#[test]
fn a_tokio_token_cancels_calls_in_every_place() {
    for way in EVERY_WAY {
        let theirs = CancellationToken::new();
        let ours = CancelToken::from(&theirs);
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
                until_cancelled(&token)
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

// Fails if the link does not keep the future that waits for the token of Tokio.
#[test]
fn a_token_made_from_tokios_is_cancelled_with_it_and_not_the_reverse() {
    let root = CancellationToken::new();
    let theirs = root.child_token();
    let ours = CancelToken::from(&theirs);
    let below = ours.child();
    let other = CancelToken::from(&theirs);
    other.cancel();
    assert!(!theirs.is_cancelled() && !ours.is_cancelled());
    root.cancel();
    assert!(ours.is_cancelled() && below.is_cancelled());
    assert!(
        CancelToken::from(&theirs).is_cancelled(),
        "a link to a token cancelled before"
    );
    assert!(below.check().unwrap_err().is_cancelled());
}

/// Callbacks must not be lost, nor run while tokio-util holds its own locks.
#[test]
fn callbacks_run_and_may_use_the_tokio_token() {
    let root = CancellationToken::new();
    let theirs = root.child_token();
    let ours = CancelToken::from(&theirs);
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
fn a_tokio_token_made_from_a_token_is_cancelled_with_it_also_by_a_deadline() {
    let ours = CancelToken::new();
    let theirs = LinkedToken::from(&ours);
    let below = theirs.child_token();
    assert!(!theirs.is_cancelled());
    ours.cancel();
    assert!(theirs.is_cancelled() && below.is_cancelled());
    assert!(
        LinkedToken::from(&ours).is_cancelled(),
        "a link to a token cancelled before"
    );
    // The timer cancels such a token a moment later.
    for _ in 0..100 {
        let passed = CallContext::detached().with_deadline(Deadline::after(Duration::ZERO));
        assert!(
            LinkedToken::from(&passed.run(CancelToken::current)).is_cancelled(),
            "a link to a token whose deadline has passed"
        );
    }

    let alone = CancelToken::new();
    LinkedToken::from(&alone).cancel();
    assert!(!alone.is_cancelled());

    let policy = Timeout::new("tokens::deadline", short_limit()).unwrap();
    let waits = policy.outcome(|token| {
        let theirs = LinkedToken::from(&token);
        block_on(theirs.cancelled());
        Ok::<_, TimeoutError>(())
    });
    assert!(matches!(waits, Outcome::TimedOut(_)), "{waits:?}");
}

/// Links used to stay with a token that lives on, and accumulate.
#[test]
fn dropping_either_side_removes_the_link() {
    // Their token lives on: its waiters are dropped with ours.
    let theirs = CancellationToken::new();
    let drops = {
        let ours = CancelToken::from(&theirs);
        let drops = Drops::default();
        let kept = drops.value();
        ours.on_cancel(move || drop(kept)).forget();
        let below = ours.child();
        drop(ours);
        assert_eq!(drops.count(), 0, "the child keeps the callback");
        drop(below);
        drops
    };
    assert_eq!(drops.count(), 1, "our token is dropped");
    theirs.cancel();

    // Our token lives on after theirs, and can still be cancelled.
    let ours = CancelToken::from(&CancellationToken::new());
    assert!(!ours.is_cancelled());
    ours.cancel();

    // Our token lives on and the link to theirs is dropped: nothing cancels theirs.
    let ours = CancelToken::new();
    let link = LinkedToken::from(&ours);
    let theirs = link.clone();
    drop(link);
    ours.cancel();
    assert!(!theirs.is_cancelled());
    // The link outlives our token.
    let link = LinkedToken::from(&CancelToken::new());
    assert!(!link.is_cancelled());
}

/// A cancellation that races with the creation of a link must not be lost.
#[test]
fn a_link_made_during_a_cancellation_is_cancelled() {
    for _ in 0..2_000 {
        let theirs = CancellationToken::new();
        let canceller = theirs.clone();
        let cancels = std::thread::spawn(move || canceller.cancel());
        let ours = CancelToken::from(&theirs);
        let link = LinkedToken::from(&ours);
        cancels.join().unwrap();
        assert!(ours.is_cancelled());
        eventually("their token is cancelled", || link.is_cancelled());
    }
}
