//! Calls without a listener, of operations without a token, end like all other calls.

use crate::{call_error, support};
use std::thread;
use std::time::Duration;

use call_error::CallError;
use support::{EVERY_WAY, Way, past_short, short_limit};

const LONG: Duration = Duration::from_secs(60);

annotated! {
    mod bare, [name = "unobserved_calls::bare", limit = limit], (limit: Duration, lasts: Duration, succeeds: bool) -> Result<u32, CallError> {
        thread::sleep(lasts);
        if succeeds { Ok(7) } else { Err(CallError::Own) }
    }
}

/// A late result used to be returned if no listener observed the call.
#[test]
fn a_late_result_of_an_unobserved_call_is_not_returned() {
    for way in EVERY_WAY {
        for succeeds in [true, false] {
            let late = bare::call(way, short_limit(), past_short(), succeeds);
            // A success of an inline poll is never late.
            let is_right = match &late {
                Ok(result) => way == Way::AsyncInline && succeeds && *result == 7,
                Err(CallError::Timeout(error)) => error.is_timed_out(),
                Err(CallError::Own) => false,
            };
            assert!(is_right, "{way:?}: {late:?}");
        }
    }
}

#[test]
fn a_result_in_time_of_an_unobserved_call_is_returned() {
    for way in EVERY_WAY {
        let in_time = bare::call(way, LONG, Duration::ZERO, true);
        assert!(matches!(in_time, Ok(7)), "{way:?}: {in_time:?}");
        let failed = bare::call(way, LONG, Duration::ZERO, false);
        assert!(matches!(failed, Err(CallError::Own)), "{way:?}: {failed:?}");
    }
}
