use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};
use timeout_driver_examples::Error;
use timeout_driver_examples::channel::first;

use crate::support::{LONG, ends_at_a_cancellation, ends_at_its_limit, leaves_nothing_running};

/// Waits for a channel, and says meanwhile that it is busy.
fn waiting(
    values: &Receiver<u32>,
    busy: &AtomicBool,
    limit: Duration,
) -> Result<Option<u32>, Error> {
    busy.store(true, Ordering::SeqCst);
    let result = first(values.clone(), values.clone(), limit);
    busy.store(false, Ordering::SeqCst);
    result
}

#[test]
fn a_select_ends_at_the_limit_and_at_a_cancellation_and_takes_no_value() {
    let (sender, values) = unbounded();
    let busy = AtomicBool::new(false);
    let is_busy = || busy.load(Ordering::SeqCst);
    ends_at_its_limit(|limit| waiting(&values, &busy, limit), is_busy);
    ends_at_a_cancellation(|limit| waiting(&values, &busy, limit), is_busy);
    leaves_nothing_running("first");
    sender.send(42).unwrap();
    assert_eq!(waiting(&values, &busy, LONG).unwrap(), Some(42));
}
