//! Calls without a listener, of operations without a token, end like all other calls.

use crate::{fault, support};
use std::thread;
use std::time::Duration;

use fault::Fault;
use support::{EVERY_WAY, Way, past_short, short_limit};

const LONG: Duration = Duration::from_secs(60);

annotated! {
    mod bare, [name = "unobserved_calls::bare", limit = limit], (limit: Duration, lasts: Duration, answers: bool) -> Result<u32, Fault> {
        thread::sleep(lasts);
        if answers { Ok(7) } else { Err(Fault::Own) }
    }
}

/// A late result used to be returned if no listener observed the call.
#[test]
fn a_late_result_of_an_unobserved_call_is_not_returned() {
    for way in EVERY_WAY {
        for answers in [true, false] {
            let late = bare::call(way, short_limit(), past_short(), answers);
            // A success of an inline poll is never late.
            let is_right = match &late {
                Ok(result) => way == Way::AsyncInline && answers && *result == 7,
                Err(Fault::Ended(error)) => error.is_timed_out(),
                Err(Fault::Own) => false,
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
        assert!(matches!(failed, Err(Fault::Own)), "{way:?}: {failed:?}");
    }
}
