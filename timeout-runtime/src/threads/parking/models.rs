//! Models of races on a parker.

use super::*;
use crate::sync::model_env;
use std::future::poll_fn;

#[cfg(timeout_loom)]
use loom::thread::{JoinHandle, spawn};
#[cfg(timeout_shuttle)]
use shuttle::thread::{JoinHandle, spawn};

const PREEMPTIONS: usize = 3;

#[test]
fn a_concurrent_wake_up_is_not_lost() {
    model_env::check(PREEMPTIONS, || {
        let parker = Arc::new(Parker::new());
        let other = spawn({
            let parker = Arc::clone(&parker);
            move || parker.unpark()
        });
        parker.park_until(Tick::NEVER);
        other.join().unwrap();
    });
}

#[test]
fn a_park_ends_at_its_time() {
    model_env::check(PREEMPTIONS, || {
        let until = Tick::now().plus(Duration::from_millis(5));
        let other = spawn(|| model_env::advance(Duration::from_millis(5)));
        let parker = Parker::new();
        while Tick::now() < until {
            parker.park_until(until);
        }
        other.join().unwrap();
    });
}

/// A future that another thread wakes between its first and its second poll. The first poll also
/// runs `inside`.
fn woken_once(inside: impl Fn()) -> impl Future<Output = ()> {
    let mut other = None;
    poll_fn(move |context| {
        if let Some(other) = other.take() {
            JoinHandle::join(other).unwrap();
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        other = Some(spawn(move || waker.wake()));
        inside();
        Poll::Pending
    })
}

#[test]
fn a_wait_inside_a_poll_does_not_consume_the_outer_wake_up() {
    model_env::check(PREEMPTIONS, || {
        // Creates the parker of the thread.
        block_on(async {});
        block_on(woken_once(|| block_on(woken_once(|| ()))));
    });
}
