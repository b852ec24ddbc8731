//! The waits of a token in virtual time: channels, conditions, attempts and interruptions.

// Tests of this file fail if one of these waits holds the time, or if time moves although a channel
// has a value.

use crate::{new_clock, secs};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use timeout_runtime::{CancelToken, TimeoutError, within_blocking, workers};

#[test]
fn a_value_is_received_at_the_instant_at_which_it_is_sent() {
    let clock = new_clock();
    let inside = clock.clone();
    let (sender, receiver) = mpsc::channel();
    let times = clock.run(|| {
        let sends = clock.spawn(move || {
            for pause in [1, 10, 20] {
                CancelToken::new().sleep(secs(pause)).unwrap();
                sender.send(()).unwrap();
            }
        });
        let times = within_blocking(secs(60), move |token| {
            let mut times = Vec::new();
            while token.recv(&receiver)?.is_some() {
                times.push(inside.now());
            }
            Ok::<_, TimeoutError>(times)
        });
        sends.join().unwrap();
        times
    });
    assert_eq!(times, Ok(Ok(vec![secs(1), secs(11), secs(31)])));
}

#[test]
fn a_receiver_without_a_sender_waits_for_its_limit() {
    let clock = new_clock();
    let (_sender, receiver) = mpsc::channel::<()>();
    let error = clock.run(|| within_blocking(secs(60), move |token| token.recv(&receiver)));
    assert_eq!(error.unwrap_err().elapsed(), secs(60));
}

#[test]
fn a_condition_is_seen_at_the_instant_at_which_it_changes() {
    let clock = new_clock();
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    clock.run(|| {
        let changes = clock.spawn({
            let shared = Arc::clone(&shared);
            move || {
                for _ in 0..4 {
                    CancelToken::new().sleep(secs(5)).unwrap();
                    *shared.0.lock().unwrap() += 1;
                    shared.1.notify_all();
                }
            }
        });
        let token = CancelToken::new();
        let count = token.wait_while(&shared.1, shared.0.lock().unwrap(), |count| *count < 3);
        drop(count.unwrap());
        assert_eq!(clock.now(), secs(15));
        changes.join().unwrap();
        assert_eq!(clock.now(), secs(20));
    });
}

#[test]
fn the_pauses_between_attempts_are_virtual() {
    let clock = new_clock();
    clock.run(|| {
        let end = secs(1);
        let token = CancelToken::new();
        token
            .wait_until(|| (clock.now() >= end).then_some(()))
            .unwrap();
        assert!(clock.now() < end + Duration::from_millis(10));
    });
}

/// The pauses between two calls of `stop` are 1, 2, 4 ms and so on.
#[test]
fn work_that_waits_is_stopped_again_after_virtual_pauses() {
    let clock = new_clock();
    clock.run(|| {
        let error = within_blocking(secs(5), |token| {
            let driver = CancelToken::new();
            let stops = AtomicUsize::new(0);
            let stop = {
                let driver = driver.clone();
                move || {
                    if stops.fetch_add(1, SeqCst) == 3 {
                        driver.cancel();
                    }
                }
            };
            token.interrupt_with(stop, || driver.wait_timeout(Duration::MAX))
        });
        assert!(error.is_err());
        assert_eq!(workers::drain(secs(60)), 0);
        assert_eq!(clock.now(), secs(5) + Duration::from_millis(1 + 2 + 4));
    });
}

/// Time stands while the work blocks, so a stop that was lost is repeated in real time.
#[test]
fn work_that_blocks_elsewhere_is_stopped_again() {
    let clock = new_clock();
    let (sender, receiver) = mpsc::channel();
    let work = clock.spawn(move || {
        within_blocking(secs(5), move |token| {
            let mut stops = 0;
            let stop = move || {
                stops += 1;
                if stops == 2 {
                    sender.send(()).unwrap();
                }
            };
            let canceller = token.clone();
            // The work itself is cancelled while it blocks.
            token.interrupt_with(stop, || {
                canceller.cancel();
                receiver.recv().unwrap();
            })
        })
    });
    assert!(
        work.join()
            .unwrap()
            .is_err_and(|error| error.is_cancelled())
    );
    assert_eq!(clock.now(), secs(0));
}
