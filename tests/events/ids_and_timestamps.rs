//! The event of a call has an id that no other call has, and the system time of its outcome.

use crate::support;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use support::LONG;
use timeout_runtime::{Event, Timeout, TimeoutError};

/// Makes `count` calls on this thread. Returns what `read` reads from their events.
fn calls<T: Send + 'static>(
    count: usize,
    read: impl Fn(&Event<'_>) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let policy = Timeout::new("ids", Duration::from_millis(LONG))
        .unwrap()
        .with_listener(move |event| sink.lock().unwrap().push(read(event)))
        .inline();
    for _ in 0..count {
        policy.call(|_| Ok::<_, TimeoutError>(())).unwrap();
    }
    let mut seen = seen.lock().unwrap();
    seen.drain(..).collect()
}

// Fails if a thread takes the ids that another one has taken, or uses one twice.
#[test]
fn ids_are_unique_and_increase_within_a_thread() {
    let of_threads: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| calls(500, |event| event.call.into())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for ids in &of_threads {
        assert!(ids.is_sorted_by(|one, next| one < next));
    }
    let all: HashSet<u64> = of_threads.iter().flatten().copied().collect();
    assert_eq!(all.len(), 8 * 500);
}

// Fails if the time since the reading that a timestamp is computed from is added twice.
#[test]
fn a_timestamp_is_the_system_time_of_the_outcome() {
    /// The clock of the system time is adjusted while the other one is not. The first reading is
    /// used for 10 ms, and its two parts are up to 1 ms apart.
    const ADJUSTED: Duration = Duration::from_millis(5);
    for _ in 0..200 {
        let before = SystemTime::now() - ADJUSTED;
        let timestamps = calls(50, |event| event.timestamp);
        let after = SystemTime::now() + ADJUSTED;
        for timestamp in timestamps {
            assert!(before <= timestamp && timestamp <= after);
        }
    }
}
