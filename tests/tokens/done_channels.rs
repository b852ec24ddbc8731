//! Feature `crossbeam-channel`: `done` is a channel that closes when its token is cancelled.

use crate::{concurrent, support};
use std::thread;
use std::time::Duration;

use concurrent::must_return;
use crossbeam_channel::{Receiver, RecvError, Select, TryRecvError, select, unbounded};
use support::{EVERY_WAY, Gate, assert_timed_out, limit, short};
use timeout_runtime::integrations::crossbeam_channel::Done;
use timeout_runtime::{CallContext, CancelToken, Deadline, TimeoutError};

#[track_caller]
fn assert_open(done: &Done) {
    assert_eq!(done.try_recv(), Err(TryRecvError::Empty));
}

#[track_caller]
fn assert_closed(done: &Done) {
    assert_eq!(done.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(done.recv(), Err(RecvError));
}

/// Adds up the numbers of a channel until the token is cancelled.
fn sum(token: &CancelToken, numbers: &Receiver<u32>) -> (u32, Result<(), TimeoutError>) {
    let (done, mut sum) = (token.done(), 0);
    loop {
        select! {
            recv(numbers) -> number => sum += number.expect("the channel stays open"),
            recv(done) -> closed => {
                assert_eq!(closed, Err(RecvError));
                return (sum, token.check());
            }
        }
    }
}

#[test]
fn a_select_takes_values_until_the_cancellation() {
    let (token, (sender, numbers)) = (CancelToken::new(), unbounded());
    let (cancels, queue) = (token.clone(), numbers.clone());
    let sends = thread::spawn(move || {
        (1..=4).for_each(|number| sender.send(number).unwrap());
        support::eventually("all values are taken", || queue.is_empty());
        cancels.cancel_with("shutdown");
        sender
    });
    let (sum, end) = must_return(move || sum(&token, &numbers));
    assert!(end.unwrap_err().is_cancelled());
    // The last value can be on its way when its channel is empty.
    assert!(sum == 10, "{sum}");
    drop(sends.join().unwrap());
}

// Fails if no timer watches the deadline of a call that runs inline.
#[test]
fn the_deadline_of_a_call_closes_the_channel_wherever_it_runs() {
    for way in EVERY_WAY {
        let (_sender, numbers) = unbounded();
        let outcome = way.run(&limit("done_channels::limit", short()), move |token| {
            must_return(move || sum(&token, &numbers)).1
        });
        assert_timed_out(way, &outcome);
    }
}

#[test]
fn the_channel_of_a_cancelled_token_is_closed() {
    let token = CancelToken::new();
    token.cancel();
    assert_closed(&token.done());

    let passed = CallContext::detached().with_deadline(Deadline::after(Duration::ZERO));
    assert_closed(&passed.run(CancelToken::current).done());
}

// Fails if the channel is closed on another thread, a moment later.
#[test]
fn the_channel_is_closed_when_cancel_returns() {
    let token = CancelToken::new();
    let (first, second) = (token.done(), token.child().done());
    assert_open(&first);
    assert_open(&second);
    token.cancel();
    assert_closed(&first);
    assert_closed(&second);
}

// Fails if the channel does not keep its token: nothing would cancel it any more.
#[test]
fn a_channel_outlives_the_other_owners_of_its_token() {
    let parent = CancelToken::new();
    let done = parent.child().done();
    assert_open(&done);
    parent.cancel();
    assert_closed(&done);

    let alone = CancelToken::new().done();
    assert_open(&alone);
}

#[test]
fn clones_of_the_receiver_close_with_the_token_or_with_the_channel() {
    let token = CancelToken::new();
    let (kept, dropped) = (token.done(), token.done());
    let (of_kept, of_dropped): (Receiver<_>, Receiver<_>) = (kept.clone(), dropped.clone());
    drop(dropped);
    assert_eq!(of_dropped.try_recv(), Err(TryRecvError::Disconnected));
    assert!(!token.is_cancelled());
    assert_eq!(of_kept.try_recv(), Err(TryRecvError::Empty));
    token.cancel();
    assert_eq!(of_kept.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn a_dynamic_select_and_a_blocking_recv_take_the_channel() {
    let token = CancelToken::new();
    let started = Gate::new();
    let (cancels, has_started) = (token.clone(), started.clone());
    let canceller = thread::spawn(move || {
        has_started.wait();
        cancels.cancel();
    });
    must_return(move || {
        let (_sender, numbers) = unbounded::<u32>();
        let done = token.done();
        let mut select = Select::new();
        select.recv(&numbers);
        let is_done = select.recv(&done);
        started.open();
        let ready = select.select();
        assert_eq!(ready.index(), is_done);
        assert_eq!(ready.recv(&done), Err(RecvError));
        assert_eq!(done.recv(), Err(RecvError));
    });
    canceller.join().unwrap();
}

/// A cancellation that races with `done` must not be lost.
#[test]
fn a_channel_made_during_a_cancellation_closes() {
    for _ in 0..2_000 {
        let token = CancelToken::new();
        let cancels = token.clone();
        let canceller = thread::spawn(move || cancels.cancel());
        let done = token.done();
        must_close(&done);
        canceller.join().unwrap();
    }
}

#[track_caller]
fn must_close(done: &Done) {
    let closed = done.recv_timeout(support::SOON);
    let closed = closed.expect_err("the channel carries no message");
    assert!(closed.is_disconnected(), "the channel stays open");
}
