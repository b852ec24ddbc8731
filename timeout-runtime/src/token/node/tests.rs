//! Tests of long chains, wide trees and meshes of tokens.

use super::*;
use crate::outcome::TimeoutError;
use crate::time::Deadline;
use crate::{CancelToken, Timeout};
use std::thread;
use std::time::Duration;

/// So deep or wide that a recursion would overflow the stack of `on_a_small_stack`.
const MANY: usize = 200_000;

fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10).spawn(f);
    thread.unwrap().join().unwrap();
}

fn chain() -> Vec<CancelToken> {
    let mut tokens = vec![CancelToken::new()];
    for _ in 0..MANY {
        let child = tokens[tokens.len() - 1].child();
        tokens.push(child);
    }
    tokens
}

#[test]
fn a_long_chain_is_cancelled_and_dropped_in_any_order() {
    on_a_small_stack(|| {
        let tokens = chain();
        tokens[0].cancel();
        assert!(tokens[MANY].is_cancelled());
        drop(tokens);

        let mut leaf_first = chain();
        while leaf_first.pop().is_some() {}

        // Only the leaf holds the chain.
        let leaf = chain().pop();
        drop(leaf);
    });
}

/// The list of dropped parents once kept some of them.
#[test]
fn a_chain_that_is_let_go_leaves_nothing() {
    let held = Arc::new(());
    let mut token = CancelToken::new();
    let holds = Arc::clone(&held);
    token.on_cancel(move || drop(holds)).forget();
    for _ in 0..10 {
        token = token.child();
    }
    drop(token);
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_wide_root_is_cancelled_and_dropped() {
    on_a_small_stack(|| {
        let root = CancelToken::new();
        let children: Vec<_> = (0..MANY).map(|_| root.child()).collect();
        root.cancel();
        assert!(children.iter().all(CancelToken::is_cancelled));
    });
}

#[test]
fn ended_calls_leave_no_link_on_a_parent_that_outlives_them() {
    let parent = CancelToken::new();
    let calls = Timeout::new("node::links", Duration::from_secs(60)).unwrap();
    crate::CallContext::detached().with_token(&parent).run(|| {
        for n in 0..100 {
            let ending = calls.call(move |_| if n % 3 == 0 { Err(error()) } else { Ok(n) });
            assert_eq!(ending.is_err(), n % 3 == 0);
            let inline = calls.inline().call(|_| Ok::<_, TimeoutError>(n));
            assert!(inline.is_ok());
        }
    });
    // A worker drops its reference to the last call just after it has published the result.
    while parent.0.children() != 0 {
        thread::yield_now();
    }
}

/// The token of a context with this deadline.
fn token(deadline: Deadline, watch: Watch, parents: &[NodeRef]) -> CancelToken {
    CancelToken(NodeRef::new(Owner::context(deadline), watch, parents))
}

fn error() -> TimeoutError {
    TimeoutError::new("test", Cause::Cancelled, None, Duration::ZERO, true, None)
}

#[test]
fn a_deadline_is_found_through_lines_that_meet_again() {
    let far = Deadline::after(Duration::from_secs(3600));
    let mut token = token(far, Watch::Watched, &[]);
    for _ in 0..64 {
        token = CancelToken::linked([token.child(), token.child()]);
    }
    assert_eq!(token.deadline(), far);
}

#[test]
fn the_nearest_deadline_of_all_ancestors_is_the_deadline() {
    let near = Deadline::after(Duration::from_secs(60));
    let far = Deadline::after(Duration::from_secs(3600));
    let token = |deadline, parents: &[NodeRef]| token(deadline, Watch::Clocked, parents);
    let tokens = [
        token(near, &[]),
        token(far, &[]),
        CancelToken::new(),
        token(far, &[token(near, &[]).0]),
    ];
    for [one, two, three] in [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 2, 3]] {
        let linked = CancelToken::linked([&tokens[one], &tokens[two], &tokens[three]]);
        assert_eq!(linked.deadline(), near);
    }
    assert_eq!(token(far, &[tokens[0].0.clone()]).deadline(), near);
}

/// Reading such a token is one atomic load, without a clock reading or a clone.
#[test]
fn a_watched_deadline_is_left_to_its_watcher() {
    let token = token(Deadline::after(Duration::ZERO), Watch::Watched, &[]);
    assert_eq!(token.cause(), None);
    let context = crate::CallContext::detached().with_token(&token);
    context.run(|| assert!(crate::context::frame::is_live()));
    token.0.expire();
    assert_eq!(token.cause(), Some(Cause::DeadlineExceeded));
}

#[test]
fn an_error_is_noted_by_each_cancelled_token_above() {
    let (request, other) = (CancelToken::new(), CancelToken::new());
    let below = CancelToken::linked([&request.child(), &other.child()]).child();
    request.cancel();
    assert!(below.check().is_err());
    assert!(below.0.has_given_error() && request.0.has_given_error());
    assert!(!other.0.has_given_error());
    other.cancel();
    assert!(below.check().is_err());
    assert!(other.0.has_given_error());
}

/// The caller of a nested call can notice the deadline first.
#[test]
fn a_passed_deadline_is_noted_before_it_has_cancelled_its_token() {
    let past = token(Deadline::after(Duration::ZERO), Watch::Watched, &[]);
    let nested = Timeout::new("node::due", Duration::from_secs(60)).unwrap();
    let context = crate::CallContext::detached().with_token(&past);
    let refused = context.run(|| nested.inline().call(|_| Ok::<_, TimeoutError>(())));
    assert!(refused.unwrap_err().is_deadline_exceeded());
    assert_eq!(past.cause(), None);
    assert!(past.0.has_given_error());
}
