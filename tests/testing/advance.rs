//! `advance`, `advance_to_next` and manual clocks.

// Tests of this file fail if `advance` passes a deadline without waiting for what it wakes, or if
// its caller holds the time itself.

use crate::support::record;
use crate::{manual_clock, new_clock, secs};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use timeout_runtime::{CancelToken, TimeoutError, add_listener, within_blocking};

#[test]
fn each_deadline_on_the_way_passes_at_its_own_instant() {
    let clock = manual_clock();
    let times = Arc::new(Mutex::new(Vec::new()));
    let thread = clock.spawn({
        let (clock, times) = (clock.clone(), Arc::clone(&times));
        move || {
            let endless = move |token: CancelToken| -> Result<(), TimeoutError> {
                loop {
                    token.sleep(secs(7))?;
                    times.lock().unwrap().push(clock.now());
                }
            };
            within_blocking(secs(20), endless).unwrap_err().elapsed()
        }
    });
    clock.advance(secs(100));
    assert_eq!(thread.join().unwrap(), secs(20));
    assert_eq!(*times.lock().unwrap(), [secs(7), secs(14)]);
    assert_eq!(clock.now(), secs(100));
}

#[test]
fn a_manual_clock_moves_only_when_it_is_advanced() {
    let clock = manual_clock();
    let call = clock.spawn(|| within_blocking(secs(5), |token| token.sleep(secs(60))));
    // Nothing happens until the next line, however long this takes.
    clock.advance(Duration::ZERO);
    assert_eq!(clock.now(), secs(0));
    clock.advance(secs(4));
    assert!(!call.is_finished());
    clock.advance(secs(1));
    assert!(call.join().unwrap().is_err());
}

#[test]
fn the_clock_moves_from_deadline_to_deadline() {
    let clock = manual_clock();
    assert_eq!(clock.advance_to_next(), None);
    let call = clock.spawn(|| {
        CancelToken::new().sleep(secs(3)).unwrap();
        within_blocking(secs(5), |token| token.sleep(secs(60)))
    });
    assert_eq!(clock.advance_to_next(), Some(secs(3)));
    assert_eq!(clock.advance_to_next(), Some(secs(5)));
    assert_eq!(clock.advance_to_next(), None);
    assert!(call.join().unwrap().is_err());
    assert_eq!(clock.now(), secs(8));
}

/// The state at an instant can be checked: everything else waits then.
#[test]
fn advancing_by_nothing_waits_until_everything_else_waits() {
    let clock = new_clock();
    clock.run(|| {
        for _ in 0..100 {
            let (sender, started) = mpsc::channel();
            let call = clock.spawn(move || {
                within_blocking(secs(5), move |token| {
                    sender.send(()).unwrap();
                    token.sleep(secs(60))
                })
            });
            clock.advance(Duration::ZERO);
            assert!(started.try_recv().is_ok());
            assert!(!call.is_finished());
            assert!(call.join().unwrap().is_err());
        }
    });
}

#[test]
fn an_operation_advances_the_clock_past_its_own_limit() {
    let clock = new_clock();
    clock.run(|| {
        let inside = clock.clone();
        let error = within_blocking(secs(5), move |token| {
            inside.advance(secs(3));
            assert_eq!(token.remaining(), Some(secs(2)));
            inside.advance(secs(3));
            assert!(token.is_cancelled());
        });
        assert_eq!(error.unwrap_err().elapsed(), secs(5));
    });
}

#[test]
fn a_listener_advances_the_clock() {
    const NAME: &str = "advance::listener";
    let events = record(NAME);
    let clock = new_clock();
    let _listener = add_listener({
        let clock = clock.clone();
        move |event| {
            if event.name == NAME {
                clock.advance(secs(10));
            }
        }
    });
    clock.run(|| {
        let policy = timeout_runtime::Timeout::new(NAME, secs(5)).unwrap();
        let result: Result<(), TimeoutError> = policy.call(|token| token.sleep(secs(1)));
        assert!(result.is_ok());
        assert_eq!(clock.now(), secs(11));
    });
    assert_eq!(events.events()[0].elapsed, secs(1));
}

/// A callback runs on a thread of its own, and time stands until it has ended or waits.
#[test]
fn a_callback_advances_the_clock() {
    let clock = new_clock();
    clock.run(|| {
        let token = CancelToken::new();
        let inside = clock.clone();
        let (sender, called) = mpsc::channel();
        let _registration = token.on_cancel(move || {
            inside.advance(secs(10));
            sender.send(inside.now()).unwrap();
        });
        token.cancel();
        CancelToken::new().sleep(secs(4)).unwrap();
        assert_eq!(clock.now(), secs(4));
        assert_eq!(CancelToken::new().recv(&called), Ok(Some(secs(10))));
    });
}

#[test]
fn two_threads_advance_the_clock_together() {
    let clock = manual_clock();
    let other = std::thread::spawn({
        let clock = clock.clone();
        move || clock.advance(secs(10))
    });
    clock.advance(secs(10));
    other.join().unwrap();
    // One began at the start. The other one began there too, or where the first had come.
    assert!((secs(10)..=secs(20)).contains(&clock.now()));
}
